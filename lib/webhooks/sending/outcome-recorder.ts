import { type Concurrency, type ReadyBatches, readyBatches } from '../../batched.ts';
import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import { isQuickSuccess } from '../dispatching/slot-shares.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Records what attempts came to. */
export interface OutcomeRecorder {
    /**
     * Resolves once it is recorded, however long the store is away: what is known is not asked for again.
     *
     * @returns Whether the claim still held.
     */
    record(recorded: RecordedOutcome, claim: Claim): Promise<boolean>;
}

/**
 * Claims share one statement at a time, and outcomes another, so that many share each. Beside a statement that has said nothing for a second, since
 * its connection may be dead, a second one may run: otherwise the deliveries that wait for it would not be sent.
 */
export const STATEMENTS: Concurrency = { runs: 1, silentAfter: 1_000, runsWithSilent: 2, sharesMoment: true };

/** How many quick successes share a statement, at most, and from how many on they wait for no more. */
const QUICK = { most: 200, enough: 20 } as const;

/**
 * The same of all others. Each takes several times as long, and 64 attempts that run into their time limit together would keep a core of the database busy
 * for as long as a healthy receiver takes to answer.
 */
const OTHERS = { most: 16, enough: 16 } as const;

/** Milliseconds between the tries to record an outcome, the last one for ever: what is not recorded is sent again. */
const RECORD_RETRIES: readonly number[] = [100, 300, 1000];

/** What took long waits such a part of that time for others that end meanwhile, and so many milliseconds at most. */
const SLOW = { part: 1 / 20, most: 100 } as const;

/** Milliseconds for which the success of what has been late for long waits: a retry, or what is replayed. */
const LATE_ANYWAY = 25;

/** An outcome on its way into the store. */
interface Waiting {
    readonly recorded: RecordedOutcome;
    /** Whether it waits for one that begins a statement. */
    waits: boolean;
}

/** The recorder of a process. */
export function outcomeRecorder(
    context: Pick<WebhooksContext, 'deliveries' | 'breaker' | 'session' | 'sleep' | 'onError'>,
): OutcomeRecorder {
    const batches = outcomeBatches(context);

    function add(recorded: RecordedOutcome, milliseconds: number): Promise<boolean> {
        const waiting: Waiting = { recorded, waits: milliseconds > 0 };
        if (waiting.waits) {
            setTimeout(() => {
                waiting.waits = false;
                batches.proceed();
            }, milliseconds);
        }
        return batches.add(waiting);
    }

    return {
        async record(recorded, claim) {
            // A process that stops may have no time left.
            let milliseconds = context.session.offers() ? mayWait(recorded, claim) : 0;
            for (let tries = 0; ; tries += 1) {
                try {
                    return await add(recorded, milliseconds);
                } catch (error) {
                    context.onError(error as Error);
                    milliseconds = 0;
                    await context.sleep(RECORD_RETRIES[Math.min(tries, RECORD_RETRIES.length - 1)] as number);
                }
            }
            /* c8 ignore next -- nothing leaves the loop but its return */
        },
    };
}

/** For how many milliseconds nobody minds. Somebody waits for a test, and the next delivery for one that is ordered. */
function mayWait(recorded: RecordedOutcome, { attempt, singleAttempt, exporter }: Claim): number {
    if (singleAttempt || exporter.ordered) {
        return 0;
    }
    if (isQuickSuccess(recorded)) {
        return attempt === 1 ? 0 : LATE_ANYWAY;
    }
    return Math.min(SLOW.most, Math.floor(recorded.outcome.timings.total * SLOW.part));
}

/** Outcomes share statements, quick successes and others in turn with their own kind; of a delivery one at a time is recorded. */
function outcomeBatches({ deliveries, breaker }: Pick<WebhooksContext, 'deliveries' | 'breaker'>): ReadyBatches<Waiting, boolean> {
    let wasQuick = false;

    function next<Call extends { readonly item: Waiting }>(calls: readonly Call[], underWay: Iterable<Call>): readonly Call[] {
        const busy = new Set(Array.from(underWay, ({ item }) => item.recorded.deliveryId));
        const free = calls.filter(({ item }) => !busy.has(item.recorded.deliveryId));
        const quick = ready(
            free.filter(({ item }) => isQuickSuccess(item.recorded)),
            QUICK,
        );
        const others = ready(
            free.filter(({ item }) => !isQuickSuccess(item.recorded)),
            OTHERS,
        );
        wasQuick = quick.length > 0 && (others.length === 0 || !wasQuick);
        return wasQuick ? quick : others;
    }

    return readyBatches<Waiting, boolean>(
        (outcomes) =>
            deliveries.recordOutcomes(
                outcomes.map(({ recorded }) => recorded),
                breaker,
            ),
        next,
        STATEMENTS,
    );
}

/** Those of one kind that share a statement now: all, with those that could wait, once there are enough or one of them does not wait. */
function ready<Call extends { readonly item: Waiting }>(
    calls: readonly Call[],
    { most, enough }: { readonly most: number; readonly enough: number },
): readonly Call[] {
    return calls.length < enough && calls.every(({ item }) => item.waits) ? [] : calls.slice(0, most);
}
