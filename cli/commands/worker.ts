import type { Command } from 'commander';
import { performing, repeated, wholeNumber } from '../command.ts';

export function define(self: Command): void {
    performing(self, async (call) => {
        const { worker } = await import('../worker.ts');
        await worker(call);
        return undefined;
    });
    self.requiredOption('--collector <name>', 'collector to send for, repeatable', repeated(String)).option(
        '--concurrency <n>',
        'attempts under way at once, per collector',
        wholeNumber(1, 5000),
        200,
    );
}
