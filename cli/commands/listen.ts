import type { Command } from 'commander';
import { command, wholeNumber } from '../command.ts';

export function addListen(program: Command): void {
    const listen = command(program, 'listen', 'receive messages, verify their signatures and print them', async (call) => {
        const { listen } = await import('../listen.ts');
        await listen(call);
        return undefined;
    });
    listen
        .requiredOption('--port <port>', 'port to listen on, 0 for a free one', wholeNumber(0, 65535))
        .requiredOption('--secret <secret>', "the exporter's signing secret")
        .option('--host <host>', 'address to listen on', '127.0.0.1');
}
