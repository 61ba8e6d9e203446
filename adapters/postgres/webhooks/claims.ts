import type { Executor } from '../../../lib/transaction.ts';
import type {
    Claim,
    ClaimRequest,
    DeliveryStore,
    HandedOut,
    SweepOptions,
    SweepResult,
} from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Outlook } from '../../../lib/webhooks/dispatching/outlook.ts';
import { RESERVATION_TIMES } from '../../../lib/webhooks/dispatching/reservations.ts';
import type { Session } from '../../../lib/webhooks/dispatching/worker-session.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import { FAULTS } from '../../../lib/webhooks/outcomes/breaker.ts';
import { INTERRUPTIONS, interrupted } from '../../../lib/webhooks/outcomes/outcome.ts';
import { type Row, type Time, uuidOrNull } from '../database.ts';
import { prepared } from '../prepared.ts';
import { EXPORTER_COLUMNS, exporterFromRow } from './exporters.ts';

/**
 * `$1` is a JSON array of `{ index, id, token, duration, grant, holds, collector }`, `$2` the session, or null, `$3` the bytes that all bodies
 * together may have, or null.
 */
const CLAIM: string = prepared(`
select
    m.index,
    m."end",
    m.delivery_id as "deliveryId",
    m.token,
    m.claimed_at as "claimedAt",
    m.attempt,
    m.round as "attemptSinceReplay",
    m.single as "singleAttempt",
    e.generation,
    m.event_id as "eventId",
    m.kind,
    m.body,
    m.event_created_at as "eventCreatedAt",
    m.message,
    ${EXPORTER_COLUMNS}
from scanwire.claimed_messages($1, $2, $3) m
cross join lateral (select (m.exporter).*) e`);

/** A claim of {@link CLAIM} beside its event and the columns of its exporter. */
interface ClaimRow
    extends Row<StoredExporter>,
        Pick<Claim, 'deliveryId' | 'token' | 'attempt' | 'attemptSinceReplay' | 'singleAttempt' | 'generation' | 'message'> {
    /** Index of its request, from 0. */
    readonly index: number;
    /** How many requests were looked at; null for all. */
    readonly end: number | null;
    readonly eventId: string;
    readonly kind: string;
    readonly body: string;
    readonly claimedAt: Time;
    readonly eventCreatedAt: Time;
}

/**
 * `$1` milliseconds after which a job counts as lost, `$2` how many of each kind, `$3` claims in a row, `$4` outcome of those that ran
 * out, `$5` whether only claims of ended sessions count, `$6` milliseconds for which an attempt may go on unnamed.
 */
const SWEEP: string = prepared(`
select
    s.delivery_id as "deliveryId", s.exporter_id as "exporterId", s.collector, s.attempt, s.single as "singleAttempt", s.poisoned
from scanwire.take_back_grants($2, $6 * interval '1 millisecond', $5) t
cross join lateral scanwire.sweep_and_tell($1 * interval '1 millisecond', $2 + 0 * t, $3, $4, $5) s`);

/** A delivery that {@link SWEEP} has found. One that became `poisoned` has nothing but its id. */
interface SweptRow extends Omit<HandedOut, 'reservation'> {
    readonly poisoned: boolean;
}

/** As `DeliveryStore.claim` says. */
export async function claim(
    db: Executor,
    requests: readonly ClaimRequest[],
    session: string | null,
    maxBytes?: number,
): Promise<readonly (Claim | null)[]> {
    const parameters = requests.map(({ deliveryId, token, duration, reservation = null, keepsReservation = false, collector }, index) => {
        return { index, id: uuidOrNull(deliveryId), token, duration, grant: reservation, holds: keepsReservation, collector };
    });
    const { rows } = await db.query<ClaimRow>(CLAIM, [JSON.stringify(parameters), session, maxBytes ?? null]);
    const claims = new Map(rows.map((row) => [row.index, claimFromRow(row)]));
    return requests.slice(0, rows[0]?.end ?? requests.length).map((_, index) => claims.get(index) ?? null);
}

function claimFromRow({ index: _, end: __, eventId, kind, body, eventCreatedAt, ...row }: ClaimRow): Claim {
    const { deliveryId, token, claimedAt, attempt, attemptSinceReplay, singleAttempt, generation, message, ...exporter } = row;
    const event = { id: eventId, kind, body, createdAt: new Date(eventCreatedAt) };
    const claimed = { deliveryId, token, claimedAt: new Date(claimedAt), attempt, attemptSinceReplay, singleAttempt, generation };
    return { ...claimed, event, message, exporter: exporterFromRow(exporter) };
}

/** As `DeliveryStore.sweep` says. */
export async function sweep(db: Executor, { requeueAfter, limit, endedOnly = false }: SweepOptions): Promise<SweepResult> {
    const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.expired));
    const parameters = [requeueAfter, limit, FAULTS.poisonedAfter, outcome, endedOnly, RESERVATION_TIMES.reportedAfter];
    const { rows } = await db.query<SweptRow>(SWEEP, parameters);
    return {
        lost: rows.filter((row) => !row.poisoned).map(({ poisoned, ...row }) => ({ ...row, reservation: null })),
        poisoned: rows.filter((row) => row.poisoned).map(({ deliveryId }) => deliveryId),
    };
}

/**
 * `$1` id, `$2` process, `$3` slots, `$4` milliseconds, `$5` generation of the settings, or null, `$6` the time up to which it has said
 * what it has begun, or null, `$7` a JSON array of that, `$8` whether it opens sealed URLs.
 */
const KEEP_ALIVE: string = prepared(`
select h.now, h.settings, h.accepted, h.in_flight as "inFlight", h.replays, h.notices
from scanwire.heartbeat($1, $2, $3, $4, $5, $6, $7, $8) h`);

/** The sessions of workers, under which they hold what they send. @param beside Takes what may be sent twice, and waits for nobody. */
export function sessionStore(db: Executor, beside: Executor): Pick<DeliveryStore, 'keepAlive' | 'sessions' | 'endSessions'> {
    return {
        async keepAlive(
            { id, process, slots, generation = null, opensUrls = false },
            duration,
            begun = { upTo: null, attempts: [] },
            tell,
        ) {
            const named = begun.attempts.map(({ deliveryId, token, claimedAt, duration }) => {
                return { id: deliveryId, token, claimed_at: claimedAt, duration };
            });
            const parameters = [id, process, JSON.stringify(slots), duration, generation, begun.upTo, JSON.stringify(named), opensUrls];
            // One that comes late, when another has said the same, must not say of attempts that nobody has named that they have not begun.
            const way = begun.upTo === null ? db : beside;
            const { rows } = await way.query<Outlook & { now: Time }>(KEEP_ALIVE, parameters);
            const { now, ...outlook } = rows[0] as Outlook & { now: Time };
            tell?.(outlook);
            return new Date(now);
        },

        async sessions({ silent = false } = {}) {
            const { rows } = await db.query<Required<Session>>(
                `select id, process, slots, opens_urls as "opensUrls" from scanwire.worker_sessions
                where alive_until > scanwire.now() or $1
                union all
                select id, 'of a version without sessions', '{}', false from scanwire.sessionless where until > scanwire.now()`,
                [silent],
            );
            return rows;
        },

        async endSessions(ids) {
            await db.query('delete from scanwire.worker_sessions where id = any ($1::uuid[])', [ids]);
        },
    };
}
