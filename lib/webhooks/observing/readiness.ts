import { ScanwireError } from '../../errors.ts';
import { within } from '../../within.ts';
import type { DeliveryStore } from '../deliveries/delivery-store.ts';
import type { DeliveryQueue } from '../dispatching/delivery-queue.ts';

/** Whether a process can accept and deliver now, and if not, why. Safe to show to anyone: no secret, no address. */
export interface Readiness {
    /** Stays true when another process has changed the settings, or taken the name: this one still accepts events, which others send. */
    readonly ready: boolean;
    /** Why the process is not ready, or does not send. */
    readonly reasons: readonly UnreadyReason[];
}

/** One thing that a process cannot do now. */
export interface UnreadyReason {
    readonly part: 'store' | 'queue' | 'process';
    /**
     * `UNAVAILABLE` when something is away, `MISCONFIGURED` when it is there but was refused, `CONFLICT` when another process has changed the
     * settings or taken the name; or the name of what the process is doing instead.
     */
    readonly code: FailureCode | 'CONFLICT' | 'STARTING' | 'DRAINING';
    /** One sentence for people. */
    readonly message: string;
}

type FailureCode = 'UNAVAILABLE' | 'MISCONFIGURED';

/** `outdated`: another process has changed the settings of the deployment; `replaced`: another one has begun under the name of this one. */
export type Phase = 'starting' | 'running' | 'outdated' | 'replaced' | 'draining';

/** A queue that remembers whether its last use succeeded. */
export interface WatchedQueue {
    readonly queue: DeliveryQueue;
    /** Why it could not be used when that was tried last; null when it could. */
    failure(): Error | null;
}

/** The dispatcher uses its queue every second, so nobody has to ask its server on top of that. */
export function watchedQueue(queue: DeliveryQueue): WatchedQueue {
    let last: Error | null = null;
    async function noted<T>(use: Promise<T>, reaches = true): Promise<T> {
        try {
            const result = await use;
            last = reaches ? null : last;
            return result;
        } catch (error) {
            last = error as Error;
            throw error;
        }
    }

    return {
        failure: () => last,
        queue: {
            ...(queue.name !== undefined && { name: queue.name }),
            ready: () => noted(queue.ready()),
            // The job may have gone to a worker of this process, without the server. `hasLostJobs` asks the server.
            add: (jobs) => noted(queue.add(jobs), !queue.hasLostJobs),
            ...(queue.hasLostJobs && { hasLostJobs: () => noted((queue.hasLostJobs as () => Promise<boolean>)()) }),
            work: (collector, handler, options) => queue.work(collector, handler, options),
            close: () => queue.close(),
        },
    };
}

/** Milliseconds that the store is waited for, since whoever checks readiness has little patience. */
const STORE_PATIENCE = 2_000;

/** Asks the store for its time. While an answer is awaited it is not asked again, so that questions do not pile up on a silent store. */
export function readinessCheck(store: Pick<DeliveryStore, 'now'>, queue: WatchedQueue, phase: () => Phase): () => Promise<Readiness> {
    let asking: Promise<Date> | null = null;

    function asked(): Promise<Date> {
        asking ??= store.now().finally(() => {
            asking = null;
        });
        return asking;
    }

    return async () => {
        const storeFailure = await failureOf(within(asked(), { timeout: STORE_PATIENCE, late: lateStore }));
        const failures = [...reasonsOf('store', storeFailure), ...reasonsOf('queue', queue.failure())];
        const now = phase();
        const ready = failures.length === 0 && (now === 'running' || now === 'outdated' || now === 'replaced');
        return { ready, reasons: [...failures, ...PHASES[now]] };
    };
}

const PHASES: Readonly<Record<Phase, readonly UnreadyReason[]>> = {
    starting: [{ part: 'process', code: 'STARTING', message: 'The process does not send yet' }],
    running: [],
    outdated: [
        {
            part: 'process',
            code: 'CONFLICT',
            message: 'Another process has changed the settings of the deployment: this one accepts and leaves sending to others',
        },
    ],
    replaced: [
        {
            part: 'process',
            code: 'CONFLICT',
            message:
                'Another process of the deployment has begun under the name of this one: this one accepts and leaves sending to others',
        },
    ],
    draining: [{ part: 'process', code: 'DRAINING', message: 'The process stops' }],
};

function lateStore(): ScanwireError {
    return new ScanwireError('UNAVAILABLE', 'The store is silent');
}

async function failureOf(use: Promise<unknown>): Promise<unknown> {
    return await use.then(
        () => null,
        (error: unknown) => error,
    );
}

/** These texts stand in for the messages of errors, which may name servers and users. Those messages are in the log. */
const FAILURES: Readonly<Record<'store' | 'queue', Readonly<Record<FailureCode, string>>>> = {
    store: {
        UNAVAILABLE: 'The store does not answer',
        MISCONFIGURED: 'The store cannot be used as it is set up: the log says why',
    },
    queue: {
        UNAVAILABLE: 'The server of the queue is away: events are accepted, and delivered when it is back',
        MISCONFIGURED: 'The queue gets no jobs as its server is set up: the log says why',
    },
};

function reasonsOf(part: 'store' | 'queue', failure: unknown): readonly UnreadyReason[] {
    if (failure === null) {
        return [];
    }

    const code = failure instanceof ScanwireError && failure.code === 'MISCONFIGURED' ? failure.code : 'UNAVAILABLE';
    return [{ part, code, message: FAILURES[part][code] }];
}
