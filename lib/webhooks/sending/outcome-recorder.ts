import { type Concurrency, type ReadyBatches, readyBatches } from '../../batched.ts';
import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import { isQuickSuccess } from '../dispatching/slot-shares.ts';
import { type AttemptResult, newProgress, outcomeOf } from '../outcomes/outcome.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Records what attempts came to. */
export interface OutcomeRecorder {
    /**
     * Resolves once it is recorded, however long the store is away: what is known is not asked for again.
     *
     * @returns What was recorded, and whether the claim still held.
     */
    record(recorded: RecordedOutcome, claim: Claim): Promise<{ readonly stored: RecordedOutcome; readonly isInTime: boolean }>;
}

/**
 * Claims share one statement at a time, and outcomes another, so that many share each: what comes while one runs gathers, and goes with the next, which
 * begins as that one ends. A second one beside it would find fewer to share, for as much work each. Beside a statement that has said nothing for a second, since
 * its connection may be dead, a second one may run: otherwise the deliveries that wait for it would not be sent.
 */
export const STATEMENTS: Concurrency = { runs: 1, silentAfter: 1_000, runsWithSilent: 2, sharesMoment: true };

/** Outcomes of one kind, how many of which share a statement at most, and from how many on they wait for no more. */
interface Kind {
    readonly max: number;
    readonly enough: number;
    includes(recorded: RecordedOutcome): boolean;
}

const isDelivered = ({ next }: RecordedOutcome): boolean => next.state === 'delivered';

/**
 * Each but a quick success takes several times as long, and 64 attempts that run into their time limit together would keep a core of the database busy
 * for as long as a healthy receiver takes to answer; successes do not come so.
 */
const KINDS: readonly Kind[] = [
    { max: 200, enough: 20, includes: isQuickSuccess },
    { max: 100, enough: 20, includes: (recorded) => isDelivered(recorded) && !isQuickSuccess(recorded) },
    { max: 16, enough: 16, includes: (recorded) => !isDelivered(recorded) },
];

/** Milliseconds between the tries to record an outcome, the last one for ever: what is not recorded is sent again. */
const RECORD_RETRIES: readonly number[] = [100, 300, 1000];

/** So often an outcome is tried that the store refuses for what it is; then what it came to is kept without what may be refused of it. */
const MAX_REFUSALS = 5;

/** What took long waits such a part of that time for others that end meanwhile, and so many milliseconds at most. */
const SLOW = { part: 1 / 20, max: 100 } as const;

/** Milliseconds for which the success of what is replayed waits. Behind that of a retry others may, for the next step of a slow start. */
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
            let refusals = 0;
            for (let tries = 0; ; tries += 1) {
                try {
                    const stored = refusals < MAX_REFUSALS ? recorded : withoutDetails(recorded);
                    return { stored, isInTime: await add(stored, milliseconds) };
                } catch (error) {
                    context.onError(error as Error);
                    milliseconds = 0;
                    // Others that shared the statement are recorded by now: it was this one that was refused.
                    refusals += isRefusal(error) && recorded.outcome.code !== 'interrupted' ? 1 : 0;
                    await context.sleep(RECORD_RETRIES[Math.min(tries, RECORD_RETRIES.length - 1)] as number);
                }
            }
            /* c8 ignore next -- nothing leaves the loop but its return */
        },
    };
}

/** Classes of SQLSTATE that tell of a statement's values: data, constraints, limits. What else fails, a connection for one, says nothing of the outcome. */
const OF_VALUES: readonly string[] = ['22', '23', '54'];

function isRefusal(error: unknown): boolean {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    return code.length === 5 && OF_VALUES.includes(code.slice(0, 2));
}

/** What certainly can be stored of an outcome: a success stays one, and any other ends its delivery, which would be tried for ever otherwise. */
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

/** For how many milliseconds nobody minds. Somebody waits for a test, the next delivery for one that is ordered, and a receiver that wants no more to be left alone. */
function mayWait(recorded: RecordedOutcome, { attempt, attemptSinceReplay, singleAttempt, exporter }: Claim): number {
    if (singleAttempt || exporter.ordered || recorded.pause !== null || recorded.stopReason !== null) {
        return 0;
    }
    if (isQuickSuccess(recorded)) {
        return attemptSinceReplay === 1 && attempt > 1 ? LATE_ANYWAY : 0;
    }
    return Math.min(SLOW.max, Math.floor(recorded.outcome.timings.total * SLOW.part));
}

/** Outcomes share statements with their own kind, the kinds in turn; of a delivery one at a time is recorded. */
function outcomeBatches({ deliveries, breaker }: Pick<WebhooksContext, 'deliveries' | 'breaker'>): ReadyBatches<Waiting, boolean> {
    let kinds = KINDS;

    function next<Call extends { readonly item: Waiting }>(calls: readonly Call[], underWay: Iterable<Call>): readonly Call[] {
        const busy = new Set(Array.from(underWay, ({ item }) => item.recorded.deliveryId));
        const free = calls.filter(({ item }) => !busy.has(item.recorded.deliveryId));
        for (const kind of kinds) {
            const batch = ready(
                free.filter(({ item }) => kind.includes(item.recorded)),
                kind,
            );
            if (batch.length > 0) {
                kinds = [...kinds.filter((other) => other !== kind), kind];
                return batch;
            }
        }
        return [];
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

/** Those of one kind that share a statement now: once there are enough or one of them does not wait, all, those that could wait last. */
function ready<Call extends { readonly item: Waiting }>(calls: readonly Call[], { max, enough }: Kind): readonly Call[] {
    const pressing = calls.filter(({ item }) => !item.waits);
    return calls.length < enough && pressing.length === 0 ? [] : [...pressing, ...calls.filter(({ item }) => item.waits)].slice(0, max);
}
