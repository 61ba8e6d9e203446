import type { Executor } from '../../../lib/transaction.ts';
import type { DispatchOptions, DispatchResult, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import { prepared } from '../prepared.ts';

const handingOut = (handOut: string): string =>
    prepared(`
select
    delivery_id as "deliveryId", collector, attempt, single as "singleAttempt", exporter_id as "exporterId", token,
    extract(epoch from begin_by)::double precision * 1000 as "beginBy", generation, settings, round,
    waits_for as "waitsFor",
    current_setting('scanwire.passed_by', true) = 'yes' as "passedBy",
    exists (select from scanwire.order_releases) as "lettingGo"
from scanwire.${handOut}`);

/**
 * `$1` window, `$2` failures from which an exporter is probed only, `$3` limit, `$4` slots of a collector whose workers are not known, `$5`
 * milliseconds from which on an attempt is slow, `$6` milliseconds within which an attempt must have begun, or null.
 */
export const DISPATCH: string = handingOut(`hand_out_due_deliveries($1, $2, $3, $4, $5, $6::double precision * interval '1 millisecond')`);

/** The same with a rate for all exporters together: `$7` deliveries a second. */
const DISPATCH_AT_RATE: string = handingOut(`hand_out_at_rate($1, $2, $3, $4, $5, $6::double precision * interval '1 millisecond', $7)`);

/**
 * How many deliveries go with one statement once their exporter is not ordered any more, and after how many milliseconds the next ones. Each takes half a
 * millisecond on the embedded database, and meanwhile nobody else can use its only connection.
 */
export const LET_GO = { step: 100, every: 50 } as const;

const LETS_GO = `select scanwire.let_order_go(null, ${LET_GO.step}) as "any"`;

/**
 * A delivery of {@link DISPATCH}. The first row is none: it says what the other deliveries wait for, and whether any were passed over because it
 * was not their turn, or are left to be let go. Where nothing is due, its `singleAttempt` is true, and its `attempt` says in how many milliseconds
 * something will be.
 */
interface DispatchRow extends Pick<HandedOut, 'deliveryId' | 'collector' | 'attempt' | 'singleAttempt'> {
    readonly exporterId: string;
    readonly token: string | null;
    readonly beginBy: number | null;
    readonly generation: number;
    readonly settings: number;
    readonly round: number;
    readonly waitsFor: readonly string[] | null;
    readonly passedBy?: boolean | null;
    readonly lettingGo?: boolean;
}

/** As a dispatcher gets it. */
export function dispatchedFromRow(row: Omit<DispatchRow, 'waitsFor'>): HandedOut {
    const { deliveryId, collector, attempt, singleAttempt, token, beginBy, exporterId, generation, settings, round } = row;
    const reservation = token === null || beginBy === null ? null : { token, beginBy, generation, settings, attemptSinceReplay: round };
    return { deliveryId, exporterId, collector, attempt, singleAttempt, reservation };
}

/**
 * As `DeliveryStore.dispatch` says. Each dispatcher lets go what is left of a change of an exporter, since the process that has made it may have ended. It does
 * so before it hands out the next time: what is handed out is not lost where that fails, and what fails keeps nobody from handing out once more.
 */
export function dispatching(db: Executor): (options: DispatchOptions) => Promise<DispatchResult> {
    let isLettingGo = false;
    return async (options) => {
        const letsGo = isLettingGo;
        isLettingGo = false;
        const isOthers = letsGo && (await db.query<{ any: boolean }>(LETS_GO)).rows[0]?.any !== true;
        const { lettingGo, ...result } = await dispatch(db, options);
        isLettingGo = lettingGo;
        return { ...result, ...(lettingGo && !isOthers && { goOnIn: LET_GO.every }) };
    };
}

/**
 * Deliveries that were passed over, since others of their order keys come first, are not found again by the next statement. They may have used up
 * places that others could have had, so it dispatches once more at once.
 */
async function dispatch(
    db: Executor,
    { window, breakerAfter, beginWithin, limit, rate }: DispatchOptions,
): Promise<DispatchResult & { readonly lettingGo: boolean }> {
    const handedOut: HandedOut[] = [];
    for (;;) {
        const parameters = [window, breakerAfter, limit - handedOut.length, SHARES.defaultSlots, SHARES.slowAfter, beginWithin ?? null];
        const statement = rate === undefined ? DISPATCH : DISPATCH_AT_RATE;
        const [result, ...rows] = (await db.query<DispatchRow>(statement, rate === undefined ? parameters : [...parameters, rate])).rows;
        handedOut.push(...rows.map(dispatchedFromRow));
        if (result?.passedBy !== true || handedOut.length === limit) {
            const lettingGo = result?.lettingGo === true;
            const nextDue = result?.singleAttempt === true && !lettingGo && { nextDueIn: result.attempt };
            return { handedOut, waitsFor: result?.waitsFor ?? [], ...nextDue, lettingGo };
        }
    }
}
