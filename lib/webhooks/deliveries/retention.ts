import type { WebhooksContext } from '../webhooks-context.ts';

/** A day, in milliseconds: the shortest time for which anything is kept. */
const DAY = 24 * 60 * 60_000;

/** How long events and deliveries are kept, in milliseconds. */
export const KEEP_FOR: { readonly byDefault: number; readonly min: number } = { byDefault: 30 * DAY, min: DAY };

/**
 * How much longer than its deliveries an event is kept, in milliseconds: deliveries are looked at in the order in which they were stored,
 * which is that of their events but for clocks that were set and transactions that took long.
 */
export const EVENT_MARGIN: number = DAY;

/** What a batch has removed. */
export interface Expired {
    readonly deliveries: number;
    readonly events: number;
}

/** Removes what was kept long enough. */
export interface RetentionStore {
    /** Takes on the next run, which removes what is old: true, and it has begun, unless one has begun in any process within so many milliseconds. */
    begin(every: number): Promise<boolean>;
    /**
     * Removes what is older than so many milliseconds, in batches that each hold nobody up, for as long as batches are asked for: deliveries
     * that ended before, or are `held` of events from before, with their attempts; and events from {@link EVENT_MARGIN} before that of
     * which no delivery is left, with the caller's keys that they were accepted under; and replays that ended before. A delivery that has not ended stays, and so does its event.
     */
    expire(keepFor: number): AsyncIterable<Expired>;
}

/** The runs of this process. */
export interface Retention {
    start(): void;
    /** Resolves once the batch that is being removed is gone. */
    stop(): Promise<void>;
}

/** How often a run is due in all processes together, and how often each of them checks; how long a run pauses after a batch. In milliseconds. */
const RUN_EVERY = 6 * 60 * 60_000;
const CHECK_EVERY = 10 * 60_000;
const PAUSE = 200;

/** Keeps a store from growing for ever. A run that is cut short leaves the rest to the next one. */
export function retentionOf({
    deliveries: { retention },
    keepFor,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'keepFor' | 'onError'>): Retention {
    let checks: NodeJS.Timeout | undefined;
    let wake = (): void => {};
    let running: Promise<void> = Promise.resolve();

    /** Until the next batch, or the end. */
    function pause(): Promise<void> {
        return new Promise((resolve) => {
            wake = resolve;
            setTimeout(resolve, PAUSE).unref();
        });
    }

    async function run(store: RetentionStore, kept: number): Promise<void> {
        if (checks === undefined || !(await store.begin(RUN_EVERY))) {
            return;
        }
        for await (const _ of store.expire(kept)) {
            await pause();
            if (checks === undefined) {
                return;
            }
        }
    }

    return {
        start() {
            if (checks !== undefined || retention === undefined || keepFor === null) {
                return;
            }
            const check = (): void => {
                running = running.then(() => run(retention, keepFor)).catch(onError);
            };
            checks = setInterval(check, CHECK_EVERY);
            checks.unref();
            check();
        },

        async stop() {
            clearInterval(checks);
            checks = undefined;
            wake();
            await running;
        },
    };
}
