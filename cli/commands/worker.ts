import type { Command } from 'commander';
import { redisQueue } from '../../adapters/bullmq/index.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { CONCURRENCY } from '../../lib/webhooks/options.ts';
import { type Call, performing, repeated, wholeNumber } from '../command.ts';
import { dataFolder } from '../data-folder.ts';
import { egressAllowList, openStores, resolverIn, webhooksOver } from '../deployment.ts';
import { existingKeyRing } from '../key-ring.ts';
import { errorLog } from '../output/errors.ts';
import { addDrainTimeout, untilStopped } from '../until-stopped.ts';

export function define(self: Command): void {
    performing(self, worker);
    self.requiredOption('--collector <name>', 'collector to send for, repeatable', repeated).option(
        '--concurrency <n>',
        'attempts under way at once, per collector',
        wholeNumber(1, CONCURRENCY.max),
        CONCURRENCY.byDefault,
    );
    addDrainTimeout(self);
}

interface WorkerOptions {
    readonly collector: readonly string[];
    readonly concurrency: number;
    /** Seconds. */
    readonly drainTimeout: number;
}

/**
 * Sends for collectors until it is told to stop, and then finishes what it has in hand.
 *
 * @throws ScanwireError `MISCONFIGURED` without `DATABASE_URL`, `REDIS_URL` or a key ring.
 */
async function worker({ data, options, json }: Call): Promise<undefined> {
    const { collector: collectors, concurrency, drainTimeout } = options as unknown as WorkerOptions;
    const databaseUrl = required('DATABASE_URL');
    const redisUrl = required('REDIS_URL');
    const folder = dataFolder(data);
    const keyRing = await existingKeyRing(folder, process.env);
    const onError = errorLog();

    await untilStopped(drainTimeout, async ({ undo }) => {
        const stores = await openStores(folder, databaseUrl, onError);
        undo.push(() => stores.pool.end());
        const queue = redisQueue({ url: redisUrl, onWarning: onError });
        undo.push(() => queue.close());
        const exporter = webhooksOver(
            { stores, keyRing, queue, allow: egressAllowList(process.env), resolver: resolverIn(process.env) },
            onError,
        );
        undo.push((timeout) => exporter.close({ timeout }));

        await exporter.start();
        await exporter.work(collectors, { concurrency });
        const ready = { collectors, concurrency, pid: process.pid };
        process.stdout.write(json ? `${JSON.stringify(ready)}\n` : `Sending for ${collectors.join(', ')}, ${concurrency} at once each\n`);
    });
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
