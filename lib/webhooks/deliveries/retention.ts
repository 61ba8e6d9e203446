import type { WebhooksContext } from '../webhooks-context.ts';

/** A day, in milliseconds: the shortest time for which anything is kept. */
const DAY = 24 * 60 * 60_000;

/** How long events and deliveries are kept, in milliseconds. */
export const KEEP_FOR: { readonly byDefault: number; readonly min: number } = { byDefault: 30 * DAY, min: DAY };

/**
 * How much older than `keepFor` an event has to be before it is removed, in milliseconds; and none of its deliveries may be left. Deliveries are
 * looked at in the order in which they were stored. That may differ from the order of their events where a clock was set or a transaction took long,
 * and the margin is for that.
 */
export const EVENT_MARGIN: number = DAY;

/** What a batch has removed. */
export interface Expired {
    readonly deliveries: number;
    readonly events: number;
}

/** Removes what was kept long enough. */
export interface RetentionStore {
    /** Begins the next run, which removes what is old. Resolves with true, unless a run has begun in any process within the last `every` milliseconds, by the clock of now. */
    begin(every: number): Promise<boolean>;
    /**
     * Removes what is older than `keepFor` milliseconds, in batches so small that nobody is held up, for as long as batches are asked for. It
     * removes deliveries that ended before that time, with their attempts; deliveries that are `held`, of events from before that time; replays
     * that ended before that time; and events from {@link EVENT_MARGIN} earlier of which no delivery is left, with the idempotency keys of these
     * events. An active delivery stays, as does one that blocks its order key, and so do their events.
     */
    expire(keepFor: number): AsyncIterable<Expired>;
}

/** The runs of this process. */
export interface Retention {
    start(): void;
    /** Stops the runs; resolves once the batch that is being removed is gone. */
    stop(): Promise<void>;
}

/** Milliseconds: how often a run is due in all processes together, how often each process checks whether one is, and how long a run rests after a batch. */
const RUN_EVERY = 6 * 60 * 60_000;
const CHECK_EVERY = 10 * 60_000;
const REST = 200;

/** Keeps a store from growing for ever. A run that is cut short leaves the rest to the next one. */
export function retentionOf({
    deliveries: { retention },
    keepFor,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'keepFor' | 'onError'>): Retention {
    let checks: NodeJS.Timeout | undefined;
    let wake = (): void => {};
    let running: Promise<void> = Promise.resolve();

    /** Waits until the next batch is due, or the runs are stopped. */
    function rest(): Promise<void> {
        return new Promise((resolve) => {
            wake = resolve;
            setTimeout(resolve, REST).unref();
        });
    }

    async function run(store: RetentionStore, kept: number): Promise<void> {
        if (checks === undefined || !(await store.begin(RUN_EVERY))) {
            return;
        }
        for await (const _ of store.expire(kept)) {
            await rest();
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
