import type { Command } from 'commander';
import { command, repeated, wholeNumber } from '../command.ts';

export function addWorker(program: Command): void {
    const worker = command(program, 'worker', 'send for collectors; needs DATABASE_URL and REDIS_URL', async (call) => {
        const { worker } = await import('../worker.ts');
        await worker(call);
        return undefined;
    });
    worker
        .requiredOption('--collector <name>', 'collector to send for, repeatable', repeated(String))
        .option('--concurrency <n>', 'attempts under way at once, per collector', wholeNumber(1, 5000), 200);
}
