import { setTimeout as sleep } from 'node:timers/promises';
import type { Command } from 'commander';
import { DRAIN_TIMEOUT } from '../lib/webhooks/options.ts';
import { within } from '../lib/within.ts';
import { wholeNumber } from './option-values.ts';
import { stopSignal } from './stop-signal.ts';

/** Ends a part of the process, within `timeout` milliseconds: it is not waited for any longer. */
export type Undo = (timeout: number) => Promise<unknown>;

/** What {@link untilStopped} runs works with. */
export interface Running {
    /** Gets what ends each part, as soon as the part is there; done in reverse order. */
    readonly undo: Undo[];
    /** Resolves at the first signal. */
    readonly stopped: Promise<void>;
    /** True from the first signal on. */
    isStopping(): boolean;
}

/** Milliseconds of the time for stopping that are kept for each of the parts that are still to end. */
const KEPT = 500;

/**
 * Runs until the process is told to stop, then ends what was started, and the process, within `drainTimeout` seconds, whatever hangs.
 * A start that fails, or that is still going on after half of that time, is undone as far as it came.
 */
export async function untilStopped(drainTimeout: number, start: (running: Running) => Promise<void>): Promise<undefined> {
    const undo: Undo[] = [];
    let stoppedAt: number | null = null;
    const stopped = stopSignal().then(() => {
        stoppedAt = performance.now();
    });
    const timeout = drainTimeout * 1000;
    // Whoever reads what is printed may end long before us, and a file that it goes to may be full: no reason to end as well, and nobody left to tell.
    process.stdout.removeAllListeners('error').on('error', () => {});

    try {
        const given = stopped.then(() => sleep(timeout / 2, undefined, { ref: false }));
        await Promise.race([start({ undo, stopped, isStopping: () => stoppedAt !== null }), given]);
        await stopped;
    } finally {
        const end = (stoppedAt ?? performance.now()) + timeout;
        for (let step = undo.pop(); step !== undefined; step = undo.pop()) {
            const left = Math.max(0, end - performance.now() - undo.length * KEPT);
            // A failure while stopping changes nothing.
            await within(step(left), { timeout: left }).catch(() => undefined);
        }
    }

    // What was not waited for must not hold the process.
    process.exit();
}

/** The option `--drain-timeout`, which {@link untilStopped} takes. */
export function addDrainTimeout(self: Command): void {
    self.option('--drain-timeout <s>', 'seconds that stopping may take at most', wholeNumber(1, 3600), DRAIN_TIMEOUT / 1000);
}
