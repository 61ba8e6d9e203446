import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { RecordedOutcome } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { isQuickSuccess, SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import { type BreakerRules, STOPPED_FAILING } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import type { ResponseBody, ResponseStore } from '../../../lib/webhooks/outcomes/response-bodies.ts';
import { uuidOrNull } from '../database.ts';
import { prepared } from '../prepared.ts';

/**
 * `$1` is a JSON array of outcomes, `$2` the rules of the breaker, `$3` the outcome of another attempt that is under way for a delivery that was
 * delivered already.
 */
const RECORD_OUTCOMES: string = prepared('select finish_attempts as index from scanwire.finish_attempts($1, $2, $3)');

/** The same where all were delivered quickly: `$4` are their exporters. */
const RECORD_DELIVERED: string = prepared('select finish_delivered as index from scanwire.finish_delivered($1, $2, $3, $4)');

/** The same for one: `$4` its exporter, `$5` its id, `$6` its claim, `$7` when it was begun, `$8` the code of its outcome, `$9` the outcome. */
const RECORD_SINGLE_DELIVERED: string = prepared(
    'select finish_single_delivered as index from scanwire.finish_single_delivered($1, $2, $3, $4, $5, $6, $7, $8, $9)',
);

/** `$1` is a JSON array of responses. */
const KEEP_RESPONSES: string = prepared('select scanwire.keep_responses($1)');

/** `$1` is the id of a delivery. */
const RESPONSES = `
select a.number, r.text, r.bytes, r.truncated
from scanwire.attempt_responses r
join scanwire.attempts a on a.delivery_id = r.delivery_id and a.token = r.token
where r.delivery_id = $1`;

/** As `DeliveryStore.recordOutcomes` says. */
export async function recordOutcomes(db: Executor, outcomes: readonly RecordedOutcome[], rules: BreakerRules): Promise<readonly boolean[]> {
    const parameters = outcomes.map(outcomeParameter).filter(({ id, exporter_id }) => isUuid(id) && isUuid(exporter_id));
    if (parameters.length === 0) {
        return outcomes.map(() => false);
    }

    const all = [
        JSON.stringify(parameters),
        JSON.stringify({ ...rules, ...SHARES, stopReason: STOPPED_FAILING }),
        JSON.stringify(interrupted(0, INTERRUPTIONS.delivered)),
    ];
    const { rows } = await db.query<{ index: number }>(...outcomeStatement(parameters, all, outcomes.every(isQuickSuccess)));
    const held = new Set(rows.map(({ index }) => index));
    return outcomes.map((_, index) => held.has(index));
}

/** The statement that does the least work, with the parameters that follow the common ones. */
function outcomeStatement(
    parameters: readonly ReturnType<typeof outcomeParameter>[],
    common: readonly string[],
    areQuick: boolean,
): [string, unknown[]] {
    if (!areQuick) {
        return [RECORD_OUTCOMES, [...common]];
    }
    if (parameters.some(({ index }) => index > 0)) {
        return [RECORD_DELIVERED, [...common, [...new Set(parameters.map((one) => one.exporter_id))]]];
    }
    const { exporter_id, id, token, claimed_at, code, outcome } = parameters[0] as (typeof parameters)[number];
    return [RECORD_SINGLE_DELIVERED, [...common, exporter_id, id, token, claimed_at, code, outcome]];
}

function outcomeParameter(recorded: RecordedOutcome, index: number) {
    const { deliveryId, exporterId, token, begunAt, outcome, next, health, pause, stopReason } = recorded;
    const delay = next.state === 'pending' ? next.delay : null;
    const { code, ...others } = outcome;
    return {
        index,
        id: deliveryId,
        exporter_id: exporterId,
        token,
        claimed_at: begunAt,
        code,
        // First what it came to: see IN_VAIN of migration 0079-attempts-listed.
        outcome: JSON.stringify({ code, ...others }),
        last_outcome: JSON.stringify({ code, detail: outcome.detail }),
        state: next.state,
        delay: delay === 'fault' ? null : delay,
        fault: delay === 'fault',
        health,
        took: outcome.timings.total,
        pause,
        stop_reason: stopReason,
    };
}

/** Responses in the table of the migration `0072-responses`. */
export function responseStore(db: Executor): ResponseStore {
    return {
        async keep(responses) {
            const rows = responses.map(({ deliveryId, token, body }) => ({ delivery_id: deliveryId, token, ...body }));
            await db.query(KEEP_RESPONSES, [JSON.stringify(rows.filter(({ delivery_id }) => isUuid(delivery_id)))]);
        },

        async of(deliveryId) {
            const { rows } = await db.query<ResponseBody & { number: number }>(RESPONSES, [uuidOrNull(deliveryId)]);
            return new Map(rows.map(({ number, ...body }) => [number, body]));
        },
    };
}
