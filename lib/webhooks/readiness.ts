import { ScanwireError, type ScanwireErrorCode } from '../errors.ts';
import { within } from '../within.ts';
import type { DeliveryQueue } from './queue.ts';
import type { DeliveryStore } from './store.ts';

/** Whether a process can accept and deliver now, and if not, why. Safe to show to anyone: no secret, no address. */
export interface Readiness {
    readonly ready: boolean;
    /** Empty when it is ready. */
    readonly reasons: readonly UnreadyReason[];
}

export interface UnreadyReason {
    readonly part: 'store' | 'queue' | 'process';
    /** `UNAVAILABLE` for what is away, `MISCONFIGURED` for a queue that is there and refused, or what the process does instead. */
    readonly code: ScanwireErrorCode | 'STARTING' | 'DRAINING';
    /** One sentence for people. */
    readonly message: string;
}

/** `outdated`: another process has changed the settings of the deployment. */
export type Phase = 'starting' | 'running' | 'outdated' | 'draining';

/** A queue that remembers how it was last. */
export interface WatchedQueue {
    readonly queue: DeliveryQueue;
    /** Why it could not be used when that was tried last; null when it could. */
    failure(): Error | null;
}

/** The dispatcher uses its queue every second, so nobody has to ask its server on top of that. */
export function watchedQueue(queue: DeliveryQueue): WatchedQueue {
    let last: Error | null = null;
    async function noted<T>(use: Promise<T>): Promise<T> {
        try {
            const result = await use;
            last = null;
            return result;
        } catch (error) {
            last = error as Error;
            throw error;
        }
    }

    return {
        failure: () => last,
        queue: {
            ready: () => noted(queue.ready()),
            add: (jobs) => noted(queue.add(jobs)),
            ...(queue.lostJobs && { lostJobs: () => noted((queue.lostJobs as () => Promise<boolean>)()) }),
            work: (collector, handler, options) => queue.work(collector, handler, options),
            close: () => queue.close(),
        },
    };
}

/** How long the store is waited for, in milliseconds: who asks has little patience. */
const STORE_PATIENCE = 2_000;

/** Asks the store for its time, once for all who ask meanwhile. */
export function readinessCheck(store: Pick<DeliveryStore, 'now'>, queue: WatchedQueue, phase: () => Phase): () => Promise<Readiness> {
    let checking: Promise<Readiness> | null = null;

    async function check(): Promise<Readiness> {
        const storeFailure = await failureOf(within(store.now(), { timeout: STORE_PATIENCE, late: lateStore }));
        const reasons = [
            ...(storeFailure === null ? [] : [reasonOf('store', storeFailure)]),
            ...(queue.failure() === null ? [] : [reasonOf('queue', queue.failure())]),
            ...PHASES[phase()],
        ];
        return { ready: reasons.length === 0, reasons };
    }

    return () => {
        checking ??= check().finally(() => {
            checking = null;
        });
        return checking;
    };
}

const PHASES: Readonly<Record<Phase, readonly UnreadyReason[]>> = {
    starting: [{ part: 'process', code: 'STARTING', message: 'The process does not send yet' }],
    running: [],
    outdated: [{ part: 'process', code: 'CONFLICT', message: 'Another process has changed the settings of the deployment' }],
    draining: [{ part: 'process', code: 'DRAINING', message: 'The process stops' }],
};

function lateStore(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The store has not answered within ${STORE_PATIENCE} ms`);
}

async function failureOf(use: Promise<unknown>): Promise<unknown> {
    return await use.then(
        () => null,
        (error: unknown) => error,
    );
}

/** Only our own errors are known to hold no secret. */
function reasonOf(part: 'store' | 'queue', error: unknown): UnreadyReason {
    return error instanceof ScanwireError
        ? { part, code: error.code, message: error.message }
        : { part, code: 'UNAVAILABLE', message: `Cannot use the ${part} now` };
}
