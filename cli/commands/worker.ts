import type { Command } from 'commander';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { CONCURRENCY } from '../../lib/webhooks/options.ts';
import { type Call, performing, repeated, wholeNumber } from '../command.ts';
import { dataFolder } from '../data-folder.ts';
import { existingKeyRing } from '../key-ring.ts';
import { errorLog } from '../output/errors.ts';
import { stopSignal } from '../stop-signal.ts';
import { egressAllowList, openStores, webhooksOver } from '../system.ts';

export function define(self: Command): void {
    performing(self, worker);
    self.requiredOption('--collector <name>', 'collector to send for, repeatable', repeated).option(
        '--concurrency <n>',
        'attempts under way at once, per collector',
        wholeNumber(1, CONCURRENCY.max),
        CONCURRENCY.byDefault,
    );
}

/**
 * Sends for collectors until it is told to stop, and then finishes what it has in hand.
 *
 * @throws ScanwireError `MISCONFIGURED` without `DATABASE_URL`, `REDIS_URL` or a key ring.
 */
async function worker({ data, options, json }: Call): Promise<undefined> {
    const { collector: collectors, concurrency } = options as { collector: readonly string[]; concurrency: number };
    const databaseUrl = required('DATABASE_URL');
    const redisUrl = required('REDIS_URL');
    const folder = dataFolder(data);
    const keyRing = await existingKeyRing(folder, process.env);
    const onError = errorLog();

    const stopped = stopSignal();
    const stores = await openStores(folder, databaseUrl, onError);
    try {
        const queue = redisQueue({ url: redisUrl, onWarning: onError });
        const exporter = webhooksOver({ stores, keyRing, queue, allow: egressAllowList(process.env) }, onError);
        try {
            await exporter.start();
            await exporter.work(collectors, { concurrency });
            const ready = { collectors, concurrency, pid: process.pid };
            process.stdout.write(
                json ? `${JSON.stringify(ready)}\n` : `Sending for ${collectors.join(', ')}, ${concurrency} at once each\n`,
            );
            await stopped;
        } finally {
            await exporter.close();
            await queue.close();
        }
    } finally {
        await stores.pool.end();
    }
}

function required(name: string): string {
    const value = process.env[name];
    if (value === undefined) {
        throw new ScanwireError(
            'MISCONFIGURED',
            `${name} is not set: a worker shares the database and the queue of its server, so it needs DATABASE_URL and REDIS_URL`,
            { field: name },
        );
    }

    return value;
}
