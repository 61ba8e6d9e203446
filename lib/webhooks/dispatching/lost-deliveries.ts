import type { HandedOut } from '../deliveries/delivery-store.ts';
import { emitPoisoned } from '../observing/emitted-events.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { AT_ONCE } from './outlook.ts';

/** What queue and workers have lost: looked for while anything is in flight. */
export interface LostDeliveries {
    /** From now on this process watches the store. */
    watch(): void;
    /** Something may be free to be handed out once more: looks the next time, whatever the store has told. */
    now(): void;
    /**
     * Gives the store's answer. An error is noted, unless the store has just answered a heartbeat: for a while nobody can know whether a session that is silent has
     * ended.
     */
    heardBy<T>(answer: Promise<T>): Promise<T>;
    /** Looks if it is time, and puts what is lost into the queue by `enqueue`. Once `isStopped`, what is left is for the next look. */
    find(enqueue: (lost: readonly HandedOut[]) => Promise<void>, isStopped: () => boolean): Promise<void>;
}

/** Milliseconds between two looks. */
const SWEEP_EVERY = 1_000;

/**
 * Milliseconds. A session without heartbeats may belong to a live process that could not reach the store. A process that has reached the store
 * for a shorter time than this cannot know; until then it takes claims only from sessions that were ended (`endSessions`).
 */
const GRACE = 5_000;

/** Milliseconds: one heartbeat and what it may take. Who could send none for so long is silent for much longer before it counts as ended. */
const HEARD_WITHIN = 2_500;

/** A delivery that has been queued for so long, in milliseconds, is added to the queue once more. */
const REQUEUE_AFTER = 10_000;

type LostContext = Pick<WebhooksContext, 'deliveries' | 'queue' | 'lookout' | 'monotonic' | 'onEvent' | 'onError' | 'onWarning'>;

/** @param limit How many one statement returns. */
export function lostDeliveries(context: LostContext, limit: number): LostDeliveries {
    const { deliveries, lookout, monotonic, onWarning } = context;
    let next = AT_ONCE;
    let graceEnds = Number.POSITIVE_INFINITY;
    /** The queue tells once that it has lost jobs: it is kept in mind until a sweep has come to its end. */
    let areJobsLost = false;

    function watch(): void {
        graceEnds = monotonic() + GRACE;
    }

    async function heardBy<T>(answer: Promise<T>): Promise<T> {
        try {
            return await answer;
        } catch (error) {
            if (!lookout.hasHeardWithin(HEARD_WITHIN)) {
                watch();
            }
            throw error;
        }
    }

    return {
        watch,
        heardBy,

        now() {
            next = AT_ONCE;
        },

        async find(enqueue, isStopped) {
            const isRuledOut = next !== AT_ONCE && lookout.rulesOut('inFlight');
            if (isRuledOut || monotonic() < next) {
                return;
            }

            next = monotonic() + SWEEP_EVERY;
            areJobsLost = (await hasLostJobs(context)) || areJobsLost;
            const requeueAfter = areJobsLost ? 0 : REQUEUE_AFTER;
            const begunAt = monotonic();
            let isUnfinished: boolean;
            do {
                // What a round has found counts as queued since: it stays so where nobody works for its collector, and is not to be found by the next.
                const options = {
                    requeueAfter: requeueAfter + monotonic() - begunAt,
                    limit,
                    endedOnly: monotonic() < graceEnds,
                    onWarning,
                };
                const { lost, poisoned } = await heardBy(deliveries.sweep(options));
                await emitPoisoned(poisoned, context);
                await enqueue(lost);
                isUnfinished = lost.length === limit;
            } while (isUnfinished && !isStopped());
            areJobsLost &&= isUnfinished;
        },
    };
}

/** A queue that cannot be asked does not keep the sweep from its other work, since claims run out all the same. */
async function hasLostJobs({ queue, onError }: LostContext): Promise<boolean> {
    try {
        return (await queue.hasLostJobs?.()) ?? false;
    } catch (error) {
        onError(error as Error);
        return false;
    }
}
