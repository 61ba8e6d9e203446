/* What operators do while things fail. */

import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from 'scanwire/webhooks';
import type { Deployment } from './deployment.ts';

/** Milliseconds between two tries. */
const UNAVAILABLE_FOR = 250;

/** Does it again as long as the database cannot be reached: other faults go on meanwhile. */
export async function insisting(run: () => Promise<unknown>, signal: AbortSignal): Promise<void> {
    for (;;) {
        try {
            await run();
            return;
        } catch (error) {
            if (!(error instanceof ScanwireError && error.code === 'UNAVAILABLE')) {
                throw error;
            }
        }
        await sleep(UNAVAILABLE_FOR, undefined, { signal });
    }
}

/**
 * Starts an exporter that a 410 has stopped, and has sent again what that has ended, and what was held meanwhile.
 *
 * @returns Whether there was nothing to do.
 */
export async function restored({ admin, exporters: ids }: Pick<Deployment, 'admin' | 'exporters'>, name: string): Promise<boolean> {
    const { exporters, deliveries } = admin.webhooks;
    const exporterId = ids.get(name) as string;
    const isStopped = (await exporters.get(exporterId)).state === 'stopped';
    if (isStopped) {
        await exporters.start(exporterId, { wait: false });
    }

    const ended = (await deliveries.list({ exporterId, state: 'exhausted', outcome: 'gone', limit: 1000 })).filter(
        ({ kind }) => kind !== 'test',
    );
    for (const { id } of ended) {
        await deliveries.replay(id);
    }
    const { count: held } = await deliveries.count({ exporterId, state: 'held' });
    if (held > 0 && (await deliveries.replays.list([exporterId])).every(({ state }) => state !== 'running')) {
        await deliveries.replays.begin({ exporterId, held: true });
    }
    return !isStopped && ended.length === 0 && held === 0;
}
