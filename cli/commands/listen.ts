import type { Command } from 'commander';
import { performing, wholeNumber } from '../command.ts';

export function define(self: Command): void {
    performing(self, async (call) => {
        const { listen } = await import('../listen.ts');
        await listen(call);
        return undefined;
    });
    self.requiredOption('--port <port>', 'port to listen on, 0 for a free one', wholeNumber(0, 65535))
        .requiredOption('--secret <secret>', "the exporter's signing secret")
        .option('--host <host>', 'address to listen on', '127.0.0.1');
}
