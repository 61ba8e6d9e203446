import { randomUUID } from 'node:crypto';
import type pg from 'pg';
import t from 'tap';
import { only, present } from '../../../../adapters/contract/assertions.ts';
import { at, BEGIN_WITHIN, RULES, sampleEvent, WebhookBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import { accept } from '../../../../adapters/postgres/webhooks/acceptance.ts';
import type { ScanwireError } from '../../../../lib/errors.ts';
import type { Executor } from '../../../../lib/transaction.ts';
import type { Acceptance } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { AcceptOptions, ChosenSubscriber, NewEvent } from '../../../../lib/webhooks/events/new-event.ts';
import type { StoredExporter } from '../../../../lib/webhooks/exporters/exporter.ts';
import type { FormattedMessage } from '../../../../lib/webhooks/messages/formatted-message.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { seeded } from '../../../support/seeded.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

const pool = await migratedPool(t, { max: 4 });

const [ROUNDS, EVENTS] = [90, 7];
const TYPES = ['investigation', 'investigation_legacy'] as const;
const MESSAGE: FormattedMessage = { contentType: 'text/plain', headers: [['x-é', '"1"']], body: '{"é":"\\u0000🦉"}', failure: null };

/** Makes a list of what is alone. */
const FOR_NOBODY: NewEvent = { event: sampleEvent(), recipients: { types: [] }, idempotency: { key: 'of nobody', digest: 'of nothing' } };
const KINDS = [
    'queued',
    'pending',
    'held',
    'message',
    'for nobody',
    'repeated',
    'CONFLICT idempotencyKey',
    'CONFLICT id',
    'CONFLICT revision',
];

const random = seeded(83);
const below = (most: number): number => Math.floor(random() * most);
const oneOf = <T>(...all: readonly T[]): T => all[below(all.length)] as T;
const often = (): boolean => random() < 0.7;

/** Whatever keeps an exporter from getting something at once, now and then. */
const STATES = [
    "state = 'stopped'",
    "state = 'stopped', stop_reason = 'The receiver answered 410 Gone'",
    'paused_at = $1',
    "paused_until = $1::timestamptz + interval '1 minute'",
    `consecutive_failures = ${RULES.after}, probe_at = $1`,
    'slow_start = 2',
    'rate = 5',
    'answers_slowly = true',
    "collector = 'inside'",
];

/** What is on its way: more than a hundred, some late; of retries and first tries due or not; nothing. */
const ON_THE_WAY = `
insert into scanwire.deliveries (event_id, exporter_id, accepted_at, due_at, priority, collector, state, queued_at, claimed_at, token)
select gen_random_uuid(), $1, $2, $2::timestamptz + $5 * interval '1 second', $4, 'default', $3, $2, $2::timestamptz - $6 * interval '1 millisecond', 'x'
from generate_series(1, $7::integer)`;

async function addExporters(bench: WebhookBench): Promise<readonly StoredExporter[]> {
    const exporters: StoredExporter[] = [];
    for (let count = 1 + below(3); count > 0; count -= 1) {
        const exporter = await bench.addExporter({ type: oneOf(...TYPES), ...(often() && { kinds: ['idr_*'] }) });
        exporters.push(exporter);
        // As whoever has answered quickly; a new one is not known to.
        await pool.query('update scanwire.exporters set answers_slowly = false where id = $1', [exporter.id]);
        if (random() < 0.3) {
            const change = oneOf(...STATES);
            const values = change.includes('$1') ? [exporter.id, at(0)] : [exporter.id];
            await pool.query(`update scanwire.exporters set ${change.replaceAll('$1', '$2')} where id = $1`, values);
        }
        for (let kinds = below(3); kinds > 0; kinds -= 1) {
            const state = oneOf('pending', 'queued', 'sending', 'sending');
            const count = random() < 0.05 ? 110 : oneOf(1, 1, 3);
            await pool.query(ON_THE_WAY, [exporter.id, at(0), state, oneOf(1, 2, 2, 2), oneOf(-1, 60), oneOf(0, 60_000), count]);
        }
    }
    for (const collector of ['default', 'inside'].filter(often)) {
        await bench.deliveries.keepAlive({ id: randomUUID(), process: '{}', slots: { [collector]: oneOf(1, 3, 4, 40) } }, 60_000_000);
    }
    return exporters;
}

/** An event under a key that is new, known, known of another, or of an event that is gone; for those who choose, of whom one may not be there. */
async function arbitraryEvent(exporters: readonly StoredExporter[], known: readonly NewEvent[]): Promise<NewEvent> {
    const chosen = exporters.filter(({ kinds }) => kinds !== null && often()).map(({ id }) => id);
    const subscribers: readonly ChosenSubscriber[] = (random() < 0.1 ? [...chosen, randomUUID()] : chosen).map((exporterId) => ({
        exporterId,
        message: oneOf(null, MESSAGE, { ...MESSAGE, failure: 'No such field', body: '' }),
    }));
    const owner = oneOf(null, 'one', 'other');
    const before = oneOf(...known);
    const idempotency = oneOf(undefined, { key: randomUUID(), digest: 'of the body' }, before?.idempotency);
    if (idempotency !== undefined && random() < 0.1) {
        const text = `insert into scanwire.idempotency_keys values ($1, $2, $3, $4) on conflict do nothing`;
        await pool.query(text, [owner ?? '', idempotency.key, randomUUID(), 'of another body']);
    }
    return {
        event: sampleEvent(random() < 0.1 && before !== undefined ? { id: before.event.id } : {}),
        owner: idempotency === undefined || random() < 0.1 ? owner : (before?.owner ?? owner),
        ...(idempotency !== undefined && { idempotency: { ...idempotency, ...(random() < 0.2 && { digest: 'of another body' }) } }),
        recipients: { types: TYPES.filter(often), ...(subscribers.length > 0 && { subscribers }) },
    };
}

/** What the tables hold of events and keys, without what is another each time. */
const STORED: Readonly<Record<string, string>> = {
    events: 'select id, kind, body, owner, created_at from scanwire.events where id <> $1 order by id',
    deliveries: `
        select
            d.event_id, d.exporter_id, d.kind, d.accepted_at, d.due_at, d.priority, d.collector, d.state, d.ended_as, d.queued_at, d.begin_by, d.token is not null as held,
            m.event_id as message_of, m.content_type, m.headers, m.body, m.failure
        from scanwire.deliveries d
        left join scanwire.delivery_messages m on m.delivery_id = d.id
        where d.event_id in (select v.id from scanwire.events v where v.id <> $1)
        order by d.seq`,
    // One whose event is not there is as none.
    keys: `
        select k.owner, k.key, k.event_id, k.digest, (
            select array_agg((d.value ->> 'token') || e.exporter_id::text order by d.ordinality)
            from json_array_elements(k.deliveries) with ordinality d
            join scanwire.deliveries e on e.id = (d.value ->> 'id')::uuid
        ) as deliveries, json_array_length(k.deliveries) as count
        from scanwire.idempotency_keys k
        where k.key <> 'of nobody' and k.event_id in (select v.id from scanwire.events v)
        order by 1, 2`,
};

interface Outcome {
    readonly told: {
        readonly refused?: string | undefined;
        readonly eventId?: string;
        readonly receivers?: readonly string[];
        readonly handedOut?: readonly unknown[];
    };
    readonly stored: Readonly<Record<string, readonly Record<string, unknown>[]>>;
}

/** What an event comes to, and what is stored then, in a transaction of its own that comes to nothing unless it is committed. */
async function outcomeOf(newEvents: readonly NewEvent[], options: AcceptOptions, end: 'commit' | 'rollback'): Promise<Outcome> {
    const client = await pool.connect();
    try {
        await client.query('begin');
        const told = await toldOf(client, newEvents, options);
        const stored: Record<string, readonly Record<string, unknown>[]> = {};
        for (const [what, text] of Object.entries(STORED)) {
            stored[what] = (await client.query(text, text.includes('$1') ? [FOR_NOBODY.event.id] : [])).rows;
        }
        return { told, stored };
    } finally {
        await client.query(end);
        client.release();
    }
}

async function toldOf(client: pg.PoolClient, newEvents: readonly NewEvent[], options: AcceptOptions): Promise<Outcome['told']> {
    let acceptance: Acceptance;
    try {
        [acceptance] = (await accept(client as Executor, newEvents, options)) as readonly [Acceptance];
    } catch (error) {
        const { code, field } = error as ScanwireError;
        return { refused: `${code} ${field ?? 'id'}` };
    }
    const { eventId, deliveries, handedOut } = acceptance;
    const { rows } = await client.query<{ receivers: string[] }>(
        'select array(select d.exporter_id from unnest($1::uuid[]) with ordinality i join scanwire.deliveries d on d.id = i.i order by i.ordinality) as receivers',
        [deliveries],
    );
    const alike = handedOut.map(({ deliveryId: _, reservation, ...rest }) => ({
        ...rest,
        ...reservation,
        token: typeof reservation?.token,
    }));
    return { eventId, receivers: only(rows).receivers, handedOut: alike };
}

/** What it came to, for the sum of all. */
function kindsOf(id: string, { told, stored }: Outcome): readonly string[] {
    if (told.refused !== undefined) {
        return [told.refused];
    }
    if (told.eventId !== id) {
        return ['repeated'];
    }
    const own = stored.deliveries?.filter(({ event_id }) => event_id === id) ?? [];
    const messages = own.filter(({ content_type }) => content_type !== null).map(() => 'message');
    return own.length === 0 ? ['for nobody'] : [...new Set([...own.map(({ state }) => String(state)), ...messages])];
}

t.test('an event that is chosen or has a key comes to the same alone as in a list', async (t) => {
    const empty = emptyWebhookStores(pool);
    const bench = new WebhookBench(empty);
    const seen = new Map<string, number>();
    for (let round = 0; round < ROUNDS; round += 1) {
        await empty.start();
        await bench.setTime(at(0));
        const exporters = await addExporters(bench);
        const { revision } = present(await bench.exporters.subscribers?.());
        const handOut = { window: oneOf(1, 3, 8, 40), breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN };
        const known: NewEvent[] = [];
        for (let number = 0; number < EVENTS; number += 1) {
            const newEvent = await arbitraryEvent(exporters, known);
            const options = {
                ...(random() < 0.9 && { handOut }),
                ...(often() && { revision: random() < 0.1 ? revision - 1 : revision }),
            };
            const listed = await outcomeOf([newEvent, FOR_NOBODY], options, 'rollback');
            const alone = await outcomeOf([newEvent], options, 'commit');
            t.strictSame(alone, listed, `round ${round}, event ${number}`);
            known.push(newEvent);
            // Else nothing more would be handed out to them at all.
            await pool.query(
                "delete from scanwire.deliveries where state = 'pending' and priority = 1 and event_id in (select id from scanwire.events)",
            );
            for (const kind of kindsOf(newEvent.event.id, alone)) {
                seen.set(kind, (seen.get(kind) ?? 0) + 1);
            }
        }
    }
    t.comment(JSON.stringify(Object.fromEntries(seen)));
    for (const kind of KINDS) {
        t.ok((seen.get(kind) ?? 0) > 10, `${kind}: ${seen.get(kind)} of ${ROUNDS * EVENTS}`);
    }
});
