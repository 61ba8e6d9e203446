import { type Concurrency, type ReadyBatches, readyBatches } from '../../batched.ts';
import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import { isQuickSuccess } from '../dispatching/slot-shares.ts';
import { type AttemptResult, newProgress, outcomeOf } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Records what attempts came to. */
export interface OutcomeRecorder {
    /**
     * Resolves once the outcome is recorded. It goes on trying for as long as the store is away, so that what a receiver has answered is not lost, and the
     * message is not sent again.
     *
     * @returns What was recorded, and whether the claim still held.
     */
    record(recorded: RecordedOutcome, claim: Claim): Promise<{ readonly stored: RecordedOutcome; readonly isInTime: boolean }>;
}

/**
 * How many statements run at once, counted apart for claims and for outcomes. One of each: what comes while it runs is collected, and goes with the
 * next, which begins as soon as it has ended. A second statement beside it would cost as much, and have fewer deliveries to share that cost. A
 * statement that has been silent for a second may have lost its connection. A second one may then run beside it, so that other deliveries are sent
 * all the same.
 */
export const STATEMENTS_AT_ONCE: Concurrency = { runs: 1, silentAfter: 1_000, runsWithSilent: 2, sharesMoment: true };

/** Outcomes that share statements with each other. */
interface BatchGroup {
    /** Maximum number in a statement. */
    readonly max: number;
    /** From how many on the statement waits for no more. */
    readonly enough: number;
    includes(recorded: RecordedOutcome): boolean;
}

const isDelivered = ({ next }: RecordedOutcome): boolean => next.state === 'delivered';

/**
 * To record any outcome but a quick success takes several times as long, so that statements of such outcomes are kept small. Failures may also come all at
 * once: 64 attempts that run into their time limit together would keep a core of the database busy for as long as a healthy receiver takes to answer.
 */
const BATCH_GROUPS: readonly BatchGroup[] = [
    { max: 200, enough: 20, includes: isQuickSuccess },
    { max: 100, enough: 20, includes: (recorded) => isDelivered(recorded) && !isQuickSuccess(recorded) },
    { max: 16, enough: 16, includes: (recorded) => !isDelivered(recorded) },
];

/** Milliseconds between the calls that try to record an outcome. The last is repeated for ever, since a delivery without a recorded outcome is sent again. */
const RECORD_RETRIES: readonly number[] = [100, 300, 1000];

/** How often the store may refuse the content of an outcome. After that the outcome is recorded without the details that may be refused. */
const MAX_REFUSALS = 5;

/** The outcome of an attempt that took long waits for others to share its statement: for this part of the time that it took, and at most `max` milliseconds. */
const LONG_WAIT = { part: 1 / 20, max: 100 } as const;

/**
 * Milliseconds for which a quick success waits for others if it is the first try of its schedule but not the first attempt: the delivery was
 * replayed, or all attempts before were interrupted. Such a delivery is late already, so that nobody is harmed. The success of a later try does not
 * wait: in a slow start, more may be sent after it.
 */
const LATE_ANYWAY = 25;

/** An outcome on its way into the store. */
interface Waiting {
    readonly recorded: RecordedOutcome;
    /** Whether it waits for an outcome that begins a statement, and begins none itself. */
    waits: boolean;
}

/** The recorder of a process. */
export function outcomeRecorder(
    context: Pick<WebhooksContext, 'deliveries' | 'breakerRules' | 'session' | 'sleep' | 'onError'>,
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
            // A process that is about to stop may have no time to wait.
            let milliseconds = context.session.offers() ? mayWait(recorded, claim) : 0;
            let refusals = 0;
            for (let calls = 0; ; calls += 1) {
                try {
                    const stored = refusals < MAX_REFUSALS ? recorded : withoutDetails(recorded);
                    return { stored, isInTime: await add(stored, milliseconds) };
                } catch (error) {
                    context.onError(error as Error);
                    milliseconds = 0;
                    // Others that shared the statement are recorded by now: it was this one that was refused.
                    refusals += isRefusal(error) && recorded.outcome.code !== 'interrupted' ? 1 : 0;
                    await context.sleep(RECORD_RETRIES[Math.min(calls, RECORD_RETRIES.length - 1)] as number);
                }
            }
            /* c8 ignore next -- nothing leaves the loop but its return */
        },
    };
}

/** Classes of SQLSTATE for errors in a statement's values: data, constraints, limits. Other failures, such as a lost connection, say nothing of the outcome. */
const OF_VALUES: readonly string[] = ['22', '23', '54'];

function isRefusal(error: unknown): boolean {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return code.length === 5 && OF_VALUES.includes(code.slice(0, 2));
}

/** The part of an outcome that every store accepts. A success stays a success. Any other outcome ends its delivery, which would otherwise be tried for ever. */
function withoutDetails({ deliveryId, exporterId, token, begunAt, outcome: { code, timings }, next }: RecordedOutcome): RecordedOutcome {
    const isSuccess = next.state === 'delivered';
    const result: AttemptResult = {
        code: isSuccess ? code : 'invalid_exporter',
        status: null,
        detail: `The store could not keep what the attempt came to (${code})`,
        retryAfter: null,
    };
    const outcome = outcomeOf(result, newProgress(), timings.total);
    const ends = isSuccess ? next : ({ state: 'exhausted' } as const);
    return { deliveryId, exporterId, token, begunAt, outcome, next: ends, health: 'none', pause: null, stopReason: null };
}

/**
 * For how many milliseconds an outcome may wait without harm. None where somebody waits for it: a person for a test, the next delivery for one that is ordered,
 * and a receiver that wants to be left alone.
 */
function mayWait(recorded: RecordedOutcome, { attempt, attemptSinceReplay, singleAttempt, exporter }: Claim): number {
    if (singleAttempt || exporter.ordered || recorded.pause !== null || recorded.stopReason !== null) {
        return 0;
    }
    if (isQuickSuccess(recorded)) {
        return attemptSinceReplay === 1 && attempt > 1 ? LATE_ANYWAY : 0;
    }
    return Math.min(LONG_WAIT.max, Math.floor(recorded.outcome.timings.total * LONG_WAIT.part));
}

/** Outcomes share statements with those of their own group, and the groups take turns. Of one delivery only one outcome is recorded at a time. */
function outcomeBatches({
    deliveries,
    breakerRules,
}: Pick<WebhooksContext, 'deliveries' | 'breakerRules'>): ReadyBatches<Waiting, boolean> {
    let groups = BATCH_GROUPS;

    function next<Call extends { readonly item: Waiting }>(calls: readonly Call[], underWay: Iterable<Call>): readonly Call[] {
        const busy = new Set(Array.from(underWay, ({ item }) => item.recorded.deliveryId));
        const free = calls.filter(({ item }) => !busy.has(item.recorded.deliveryId));
        for (const group of groups) {
            const batch = ready(
                free.filter(({ item }) => group.includes(item.recorded)),
                group,
            );
            if (batch.length > 0) {
                groups = [...groups.filter((other) => other !== group), group];
                return batch;
            }
        }
        return [];
    }

    return readyBatches<Waiting, boolean>(
        (outcomes) =>
            deliveries.recordOutcomes(
                outcomes.map(({ recorded }) => recorded),
                breakerRules,
            ),
        next,
        STATEMENTS_AT_ONCE,
    );
}

/** Those of one group that share a statement now: none while there are too few and all of them may wait; otherwise all, with those that may wait last. */
function ready<Call extends { readonly item: Waiting }>(calls: readonly Call[], { max, enough }: BatchGroup): readonly Call[] {
    const pressing = calls.filter(({ item }) => !item.waits);
    return calls.length < enough && pressing.length === 0 ? [] : [...pressing, ...calls.filter(({ item }) => item.waits)].slice(0, max);
}
