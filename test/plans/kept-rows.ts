import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import { forAll, holderOf, sampleEvent, success } from '../../adapters/contract/webhooks/fixture.ts';
import type { DeliveryStore, HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewEvent } from '../../lib/webhooks/events/new-event.ts';
import { BREAKER, HAND_OUT } from './way.ts';

/** Deliveries that are done, each with its event, that has a key of the caller's, and its attempt, of all exporters in turn. */
const DONE = `
with added as (
    insert into scanwire.events (id, kind, body, created_at)
    select gen_random_uuid(), 'idr_investigation_created', '{"description":"' || repeat('x', 200) || '"}', scanwire.now()
    from generate_series(1, $1::integer)
    returning id
),
numbered as (
    select e.id, e.collector, row_number() over (order by e.id) - 1 as number, count(*) over () as count from scanwire.exporters e
),
traced as (
    insert into scanwire.traces (event_id, traceparent, kept_at)
    select id, '00-' || repeat('1', 32) || '-' || repeat('2', 16) || '-01', scanwire.now() from added
),
keyed as (
    insert into scanwire.idempotency_keys (owner, key, event_id, digest) select '', id::text, id, 'of the body' from added
),
kept as (
    insert into scanwire.deliveries (
        event_id, kind, accepted_at, exporter_id, due_at, queued_at, claimed_at, finished_at, priority, attempts, round, collector, state, last_code
    )
    select a.id, 'idr_investigation_created', scanwire.now(), e.id, scanwire.now(), scanwire.now(), scanwire.now(), scanwire.now(), 1, 1, 1, e.collector, 'delivered', 'delivered'
    from (select id, row_number() over () as number from added) a
    join numbered e on e.number = a.number % e.count
    returning id, claimed_at, exporter_id
),
counted as (
    insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, count)
    select exporter_id, 'delivered', 'delivered', 'idr_investigation_created', count(*) from kept group by exporter_id
)
insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
select k.id, 1, k.claimed_at, scanwire.now(), k.id::text, false, '{"code":"delivered","detail":null,"timings":{"total":5}}'
from kept k`;

/** Rows of one statement. */
const AT_ONCE = 100_000;

/** Adds deliveries that are done until there are so many. */
export async function keep(pool: pg.Pool, rows: number): Promise<void> {
    const { rows: counted } = await pool.query<{ count: number }>('select count(*)::integer as count from scanwire.deliveries');
    for (let left = rows - (counted[0]?.count ?? 0); left > 0; left -= AT_ONCE) {
        await pool.query(DONE, [Math.min(left, AT_ONCE)]);
    }
}

/** Deliveries that are sent together. */
const BATCH = 100;
/** As many are sent between two sweeps, at a rate of hundreds a second. */
const SWEPT_EVERY = 500;
const SLOTS = { default: 400 };

/** How deliveries go through the statements. */
export interface Sending {
    readonly count: number;
    /** Whether all of them wait before the first is handed out; each is handed out when it is accepted if absent. */
    readonly waiting?: boolean;
}

/** Sends deliveries by the engine's own statements, with all that this leaves behind. */
export async function send(deliveries: DeliveryStore, { count, waiting = false }: Sending): Promise<void> {
    const session = { id: randomUUID(), process: 'sender', slots: SLOTS };
    await deliveries.keepAlive(session, 3_600_000);
    for (let accepted = 0; waiting && accepted < count; accepted += BATCH) {
        await deliveries.accept(batch());
    }

    for (let sent = 0; sent < count; ) {
        const { length } = await finish(deliveries, waiting ? await dispatched(deliveries) : await acceptedAtOnce(deliveries));
        if (length === 0) {
            throw new Error(`Only ${sent} of ${count} deliveries were handed out`);
        }

        sent += length;
        if (sent % SWEPT_EVERY === 0) {
            await deliveries.sweep({ requeueAfter: 60_000, limit: 500 });
        }
    }
    await deliveries.endSessions([session.id]);
}

function batch(): readonly NewEvent[] {
    return Array.from({ length: BATCH }, () => forAll(sampleEvent()));
}

async function acceptedAtOnce(deliveries: DeliveryStore): Promise<readonly HandedOut[]> {
    return (await deliveries.accept(batch(), { handOut: HAND_OUT })).flatMap(({ handedOut }) => handedOut);
}

async function dispatched(deliveries: DeliveryStore): Promise<readonly HandedOut[]> {
    return (await deliveries.dispatch({ ...HAND_OUT, limit: BATCH })).handedOut;
}

async function finish(deliveries: DeliveryStore, handedOut: readonly HandedOut[]): Promise<readonly HandedOut[]> {
    const begunAt = await deliveries.now();
    await deliveries.recordOutcomes(
        handedOut.map((one) => success(holderOf(one), { begunAt })),
        BREAKER,
    );
    return handedOut;
}
