import { type Concurrency, readyBatches } from '../../batched.ts';
import type { Claim, RecordedOutcome } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/** Maximum number of outcomes that share one statement. */
const BATCH = 200;

/** Milliseconds between the tries to record an outcome, the last one for ever: what is not recorded is sent again. */
const RETRIES: readonly number[] = [100, 300, 1000];

/** Milliseconds for which an outcome that nobody waits for is kept for others to share its statement. */
const GATHERED_FOR = 25;

/** So many are kept no longer. */
const ENOUGH = 20;

/**
 * Claims share one statement at a time, and outcomes another, so that many share each. Beside a statement that has said nothing for a second, since
 * its connection may be dead, a second one may run: otherwise the deliveries that wait for it would not be sent.
 */
export const STATEMENTS: Concurrency = { runs: 1, silentAfter: 1_000, runsWithSilent: 2 };

/** What attempts came to, on its way into the store. */
export interface OutcomeRecords {
    /** However long the store is away: what is known is not asked for again. @returns Whether the claim still held, as `DeliveryStore.recordOutcomes` says. */
    record(recorded: RecordedOutcome, claim: Claim): Promise<boolean>;
}

interface Waiting {
    readonly recorded: RecordedOutcome;
    /** Whether it may wait for another one that begins a statement. */
    canWait(): boolean;
}

/** Outcomes share statements; of a delivery one at a time is recorded. What may wait goes with one that may not, or with others of its kind. */
export function outcomeRecords({
    deliveries,
    breaker,
    sleep,
    onError,
}: Pick<WebhooksContext, 'deliveries' | 'breaker' | 'sleep' | 'onError'>): OutcomeRecords {
    const batches = readyBatches<Waiting, boolean>(
        (outcomes) =>
            deliveries.recordOutcomes(
                outcomes.map(({ recorded }) => recorded),
                breaker,
            ),
        (waiting, underWay) => {
            const busy = new Set(Array.from(underWay, ({ item }) => item.recorded.deliveryId));
            const free = waiting.filter(({ item }) => !busy.has(item.recorded.deliveryId));
            const waits = free.length < ENOUGH && free.every(({ item }) => item.canWait());
            return waits ? [] : free.slice(0, BATCH);
        },
        STATEMENTS,
    );
    let gathering: { isOver: boolean } | null = null;

    function gathered(): { isOver: boolean } {
        if (gathering === null) {
            const begun = { isOver: false };
            gathering = begun;
            setTimeout(() => {
                begun.isOver = true;
                gathering = null;
                batches.proceed();
            }, GATHERED_FOR);
        }
        return gathering;
    }

    function add(recorded: RecordedOutcome, claim: Claim): Promise<boolean> {
        if (!isAwaited(recorded, claim)) {
            const together = gathered();
            return batches.add({ recorded, canWait: () => !together.isOver });
        }
        return batches.add({ recorded, canWait: () => false });
    }

    return {
        async record(recorded, claim) {
            for (let tries = 0; ; tries += 1) {
                try {
                    return await add(recorded, claim);
                } catch (error) {
                    onError(error as Error);
                    await sleep(RETRIES[Math.min(tries, RETRIES.length - 1)] as number);
                }
            }
            /* c8 ignore next -- nothing leaves the loop but its return */
        },
    };
}

/** Nobody waits for the end of what has been late for long: a retry, or what is replayed. The next of its order key does. */
function isAwaited({ next }: RecordedOutcome, { attempt, singleAttempt, exporter }: Claim): boolean {
    return attempt === 1 || singleAttempt || exporter.ordered || next.state !== 'delivered';
}
