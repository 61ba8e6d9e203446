import type { WebhooksContext } from './options.ts';

/** A day, in milliseconds: the shortest time for which anything is kept. */
const DAY = 24 * 60 * 60_000;

/** How long events and deliveries are kept, in milliseconds. */
export const KEEP_FOR: { readonly byDefault: number; readonly min: number } = { byDefault: 30 * DAY, min: DAY };

/**
 * How much longer than its deliveries an event is kept, in milliseconds: deliveries are looked at in the order in which they were stored,
 * which is that of their events but for clocks that were set and transactions that took long.
 */
export const EVENT_MARGIN: number = DAY;

/** What a step has removed. */
export interface Expired {
    readonly deliveries: number;
    readonly events: number;
}

/** Removes what was kept long enough. */
export interface RetentionStore {
    /** Takes the next turn, a run that removes what is old: true, and it has begun, unless one has begun in any process within so many milliseconds. */
    begin(every: number): Promise<boolean>;
    /**
     * Removes what is older than so many milliseconds, in steps that each hold nobody up, for as long as steps are asked for: deliveries
     * that ended before, or are `held` of events from before, with their attempts; and events from {@link EVENT_MARGIN} before that of
     * which no delivery is left, with the caller's keys that they were accepted under. A delivery that has not ended stays, and so does its event.
     */
    expire(keepFor: number): AsyncIterable<Expired>;
}

/** The turns of this process. */
export interface Retention {
    begin(): void;
    /** Resolves once the step that is being made is done. */
    end(): Promise<void>;
}

/** How often a turn is due in all processes together, and how often each of them looks; how long a turn rests after a step. In milliseconds. */
const TURN_EVERY = 6 * 60 * 60_000;
const LOOK_EVERY = 10 * 60_000;
const REST = 200;

/** Keeps a store from growing for ever. A turn that is cut short leaves the rest to the next one. */
export function retentionOf({
    deliveries: { retention },
    keepFor,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'keepFor' | 'onError'>): Retention {
    let looking: NodeJS.Timeout | undefined;
    let wake = (): void => {};
    let turn: Promise<void> = Promise.resolve();

    /** Until the next step, or the end. */
    function rest(): Promise<void> {
        return new Promise((resolve) => {
            wake = resolve;
            setTimeout(resolve, REST).unref();
        });
    }

    async function take(store: RetentionStore, kept: number): Promise<void> {
        if (looking === undefined || !(await store.begin(TURN_EVERY))) {
            return;
        }
        for await (const _ of store.expire(kept)) {
            await rest();
            if (looking === undefined) {
                return;
            }
        }
    }

    return {
        begin() {
            if (looking !== undefined || retention === undefined || keepFor === null) {
                return;
            }
            const look = (): void => {
                turn = turn.then(() => take(retention, keepFor)).catch(onError);
            };
            looking = setInterval(look, LOOK_EVERY);
            looking.unref();
            look();
        },

        async end() {
            clearInterval(looking);
            looking = undefined;
            wake();
            await turn;
        },
    };
}
