import pg from 'pg';
import t, { type Test } from 'tap';
import { only, present, until } from '../../adapters/contract/assertions.ts';
import { failure, forAll, holderOf, sampleEvent, sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { patiently } from '../../adapters/postgres/database.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { type Migration, migrationFiles } from '../../adapters/postgres/migrate.ts';
import { migrations } from '../../adapters/postgres/migrations/index.ts';
import { attemptLists, type Few } from '../../adapters/postgres/webhooks/attempt-lists.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { AttemptFilter, AttemptStore } from '../../lib/webhooks/deliveries/attempt-lists.ts';
import type { DeliveryFilter } from '../../lib/webhooks/deliveries/deliveries.ts';
import { testDatabase } from '../support/test-database.ts';
import { type ExplainedConnection, explainedConnection, neverVacuum } from './executed-plans.ts';
import { keep } from './kept-rows.ts';
import { BREAKER, HAND_OUT } from './way.ts';

/** The most pages that a list or a count of ten may ask for: a row of a list is one of a delivery, of an event and of the indexes of both. */
const MAX_PAGES = 300;
/** What is in vain counts as frequent. */
const ALL_ARE_MANY: Few = { newest: 0, counted: 0, late: 0 };
/** To come to the deliveries of one of several exporters. */
const OF_EACH = 4;
/** On each side of what is looked for. */
const KEPT = 15_000;

async function emptyTables(t: Test, steps: readonly Migration[] = migrations) {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    pool.on('error', () => {}); // the pool has ended before its connections have
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    await migrate(pool, { steps });
    await neverVacuum(pool);
    return { url, pool, ...postgresWebhooks({ pool, notify: false }) };
}

for (const analysed of [true, false]) {
    t.test(`lists and counts of what is rare read little of what is kept, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { url, pool, exporters, deliveries } = await emptyTables(t);
        const exporter = sampleExporter();
        await exporters.insert(exporter);
        await keep(pool, KEPT);
        const events = Array.from({ length: 10 }, () => sampleEvent({ kind: 'rare' }));
        const accepted = await deliveries.accept(events.map(forAll), { handOut: HAND_OUT });
        const holders = accepted.map(({ handedOut }) => holderOf(only(handedOut)));
        const begunAt = await deliveries.now();
        const given = { begunAt, health: 'none', next: { state: 'exhausted' } } as const;
        await deliveries.recordOutcomes(
            holders.map((holder) => failure(holder, 0, given)),
            BREAKER,
        );
        await keep(pool, 2 * KEPT);
        if (analysed) {
            await pool.query('vacuum analyze');
        }

        const filters: readonly DeliveryFilter[] = [
            { kind: 'rare' },
            { state: 'exhausted' },
            { outcome: 'connect_refused' },
            { kind: 'rare', state: 'exhausted', outcome: 'connect_refused' },
            { outcome: 'connect_refused', exporterIds: [exporter.id] },
            { state: 'exhausted', exporterIds: [exporter.id] },
            { kind: 'rare', since: new Date(0), until: new Date(Date.now() + 3_600_000) },
        ];
        const connection = await explainedConnection(url);
        t.teardown(() => connection.end());
        const explained = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
        for (const filter of [{ state: 'delivered' }, { outcome: 'delivered' }, {}] as const) {
            for (let run = 0; run < 7; run += 1) {
                const { pages } = await connection.executed(async () => {
                    t.equal(await explained.count(filter, 10_001), 2 * KEPT - ('state' in filter || 'outcome' in filter ? 10 : 0));
                });
                t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages for a number of ${JSON.stringify(filter)}`);
            }
        }
        await executesLittle(t, connection, [
            { outcome: 'connect_refused' },
            { outcome: 'connect_refused', exporterIds: [exporter.id] },
            { outcome: 'connect_refused', since: begunAt },
            { outcome: 'connect_refused', kind: 'rare' },
            { kind: 'rare' },
            { since: new Date(begunAt.getTime() - 1), until: new Date(begunAt.getTime() + 1), kind: 'rare' },
        ]);
        for (const filter of filters) {
            t.equal((await deliveries.list({ ...filter, limit: 51 })).length, 10);
            for (let run = 0; run < 7; run += 1) {
                const listed = await connection.executed(() => explained.list({ ...filter, limit: 51 }));
                const counted = await connection.executed(() => explained.count(filter, 10_001));
                for (const { pages, scans } of [listed, counted]) {
                    const whole = scans.filter(({ type, table }) => type === 'Seq Scan' && ['events', 'deliveries'].includes(table));
                    t.same(whole, [], 'reads no table as a whole');
                    // A connection learns what it needs of the catalogue.
                    t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages for ${JSON.stringify(filter)}`);
                }
            }
        }
    });
}

/** Attempts of ten deliveries. */
async function executesLittle(t: Test, connection: ExplainedConnection, filters: readonly AttemptFilter[]) {
    for (const filter of filters) {
        for (let run = 0; run < 7; run += 1) {
            const listed = await pagesOf(connection, async (lists) => t.equal((await lists.list({ ...filter, limit: 51 })).length, 10));
            const counted = await pagesOf(connection, async (lists) => t.equal(await lists.count(filter, 10_001), 10));
            for (const pages of [listed, counted]) {
                t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages for attempts of ${JSON.stringify(filter)}`);
            }
        }
    }
}

for (const analysed of [true, false]) {
    t.test(`attempts of a time are found without what was done before, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { url, pool, exporters } = await emptyTables(t);
        for (let number = 0; number < 100; number += 1) {
            await exporters.insert(sampleExporter());
        }
        await keep(pool, 2 * KEPT);
        await pool.query(AN_HOUR_AGO);
        await pool.query(TRIED_SINCE);
        if (analysed) {
            await pool.query('vacuum analyze');
        }
        const { rows } = await pool.query<{ id: string; tried: boolean }>(
            'select e.id, exists (select from scanwire.deliveries d where d.exporter_id = e.id and d.attempts > 1) as tried from scanwire.exporters e',
        );
        const all = rows.map(({ id }) => id);
        const [one = '', idle = ''] = [true, false].map((has) => present(rows.find(({ tried }) => tried === has)).id);
        const minuteAgo = new Date(Date.now() - 60_000);
        const connection = await explainedConnection(url);
        t.teardown(() => connection.end());
        const asked: readonly (readonly [AttemptFilter, number])[] = [
            [{ since: minuteAgo }, 10],
            [{ since: minuteAgo, exporterIds: all }, 10],
            [{ since: minuteAgo, exporterId: one }, 1],
            [{ since: minuteAgo, exporterId: idle }, 0],
            [{ since: minuteAgo, outcome: 'delivered' }, 3],
            [{ since: new Date(Date.now() + 3_600_000) }, 0],
            [{ until: minuteAgo, outcome: 'timeout' }, 0],
            [{ outcome: 'timeout', exporterId: idle }, 0],
            [{ outcome: 'server_error', exporterIds: all }, 7],
        ];
        for (const [filter, found] of asked) {
            for (let run = 0; run < 7; run += 1) {
                const listed = await pagesOf(connection, async (lists) =>
                    t.equal((await lists.list({ ...filter, limit: 51 })).length, found),
                );
                const counted = await pagesOf(connection, async (lists) => t.equal(await lists.count(filter, 10_001), found));
                const most = MAX_PAGES + OF_EACH * (filter.exporterIds?.length ?? 0);
                for (const pages of [listed, counted]) {
                    t.ok(pages <= most || run < 2, `${pages} pages for attempts of ${JSON.stringify(filter).slice(0, 100)}`);
                }
            }
        }
        for (const [exporterIds, found] of [[[idle], 0] as const, [all, 7] as const]) {
            for (const filter of [
                { outcome: 'server_error', exporterIds },
                { outcome: 'server_error', exporterIds, since: minuteAgo },
            ] as const) {
                for (let run = 0; run < 7; run += 1) {
                    const pages = await pagesOf(
                        connection,
                        async (lists) => t.equal((await lists.list({ ...filter, limit: 51 })).length, found),
                        ALL_ARE_MANY,
                    );
                    const most = MAX_PAGES + 4 * OF_EACH * exporterIds.length;
                    t.ok(pages <= most || run < 2, `${pages} pages for a frequent outcome of ${exporterIds.length} exporters`);
                }
            }
        }
        for (let run = 0; run < 7; run += 1) {
            const pages = await pagesOf(connection, async (lists) => {
                t.equal((await lists.list({ until: minuteAgo, limit: 20 })).length, 20);
            });
            t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages until a time`);
        }
    });
}

/** The most that one of the statements of an operation asks for. */
async function pagesOf(connection: ExplainedConnection, task: (lists: AttemptStore) => Promise<unknown>, few?: Few): Promise<number> {
    const db = patiently(connection.pool);
    let most = 0;
    const counting: Executor = {
        async query<Row>(text: string, values?: unknown[]) {
            let result: { rows: Row[]; rowCount: number | null } = { rows: [], rowCount: null };
            const { pages } = await connection.executed(async () => {
                result = await db.query<Row>(text, values);
            });
            most = Math.max(most, pages);
            return result;
        },
    };
    await task(attemptLists(() => counting, few));
    return most;
}

const AN_HOUR_AGO = `
with attempts as (
    update scanwire.attempts set started_at = started_at - interval '1 hour', finished_at = finished_at - interval '1 hour'
),
events as (
    update scanwire.events set created_at = created_at - interval '1 hour'
)
update scanwire.deliveries
set accepted_at = accepted_at - interval '1 hour', finished_at = finished_at - interval '1 hour', due_at = due_at - interval '1 hour'`;

/** Of ten old ones: four that have failed since and wait, three that have failed for good, three that were delivered late. */
const TRIED_SINCE = `
with chosen as (
    select d.id, row_number() over (order by d.seq) as number from scanwire.deliveries d where d.seq % 3001 = 17 limit 10
),
tried as (
    update scanwire.deliveries d
    set
        attempts = 2,
        priority = 2,
        state = case when c.number <= 4 then 'pending' when c.number <= 7 then 'exhausted' else 'delivered' end,
        finished_at = case when c.number > 4 then scanwire.now() end,
        last_code = case when c.number <= 7 then 'server_error' else 'delivered' end
    from chosen c
    where d.id = c.id
)
insert into scanwire.attempts (delivery_id, number, started_at, finished_at, token, lost, outcome)
select
    c.id, 2, scanwire.now(), scanwire.now(), c.id::text, false,
    ('{"code":"' || case when c.number <= 7 then 'server_error' else 'delivered' end || '","detail":null,"timings":{"total":5}}')::json
from chosen c`;

t.test('lists of several exporters have the newest of all, whoever has them', async (t) => {
    const { exporters, deliveries } = await emptyTables(t);
    const ids: string[] = [];
    for (const type of ['investigation', 'investigation_legacy', 'investigation_legacy_and_library'] as const) {
        const exporter = sampleExporter({ type, legacy: type !== 'investigation' });
        await exporters.insert(exporter);
        ids.push(exporter.id);
        const recipients = { types: [type] };
        await deliveries.accept(Array.from({ length: 20 }, () => ({ event: sampleEvent(), recipients })));
    }
    const own = ids.slice(0, 2);
    const all = (await deliveries.list({ limit: 100 })).filter(({ exporterId }) => own.includes(exporterId));
    for (const limit of [1, 2, 3, 20, 21, 39, 40, 100]) {
        const listed = await deliveries.list({ exporterIds: own, limit });
        t.same(listed, all.slice(0, limit), `${limit} of them`);
    }
    t.equal(await deliveries.count({ exporterIds: own }, 10_001), 40);
    t.equal(await deliveries.count({ exporterIds: own }, 30), 30);
});

const upTo = (end: string): readonly Migration[] =>
    migrations.slice(
        0,
        migrations.findIndex(({ id }) => id === end),
    );
const BEFORE = upTo('0065-listed-1-columns');
const COLUMNS = upTo('0065-listed-2-kind');
const INDEXES = upTo('0065-listed-7-functions');

t.test('finds deliveries from before they had what they are listed by', async (t) => {
    const { pool, exporters, deliveries } = await emptyTables(t, BEFORE);
    await exporters.insert(sampleExporter());
    const accept = async () => {
        const accepted = await deliveries.accept(['one', 'other', 'one'].map((kind) => forAll(sampleEvent({ kind }))));
        return accepted.flatMap((one) => one.deliveries);
    };
    const old = await accept();
    await pool.query(`update scanwire.deliveries set state = 'exhausted' where id = $1`, [old[0]]);
    await migrate(pool);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const [between] = (await pool.query<{ now: Date }>('select scanwire.now() as now')).rows;
    const since = new Date((between?.now.getTime() ?? 0) + 1);
    await new Promise((resolve) => setTimeout(resolve, 5));
    const recent = await accept();
    const listed = async (filter: DeliveryFilter): Promise<readonly string[]> => {
        const found = (await deliveries.list({ ...filter, limit: 10 })).map(({ id }) => id);
        t.equal(await deliveries.count(filter, 10_001), found.length);
        return found.toReversed();
    };
    t.same(await listed({ state: 'exhausted' }), [old[0]]);
    await deliveries.discard?.(present(old[1]));
    await deliveries.discard?.(present(recent[2]));
    t.same(await listed({ state: 'cancelled' }), [old[1], recent[2]]);
    t.same(await listed({ state: 'cancelled', kind: 'one' }), [recent[2]]);
    await deliveries.replay(present(old[0]));
    t.same(await listed({ state: 'exhausted' }), []);
    t.same(await listed({ state: 'pending' }), [old[0], old[2], recent[0], recent[1]]);
    t.same(await listed({ kind: 'one' }), [old[0], old[2], recent[0], recent[2]]);
    t.same(await listed({ since }), recent);
    t.same(await listed({ until: since }), old);
    t.same(await listed({ kind: 'other', until: since }), [old[1]]);
    const { rows } = await pool.query<{ kind: string | null }>('select kind from scanwire.deliveries order by seq');
    t.same(
        rows.map(({ kind }) => kind),
        [null, null, null, 'one', 'other', 'one'],
    );
    const slices = await deliveries.activity?.([new Date(0), since, new Date(Date.now() + 60_000)], { max: 10 });
    t.match(slices, [{ deliveries: 3 }, { deliveries: 3 }]);
});

t.test('finds deliveries that were being accepted while these got the kind and the time of their events', async (t) => {
    const { pool, exporters, deliveries } = await emptyTables(t, BEFORE);
    await exporters.insert(sampleExporter());
    const accept = async () => only(only(await deliveries.accept([forAll(sampleEvent({ kind: 'one' }))])).deliveries);
    const old = [await accept()];
    for (const steps of [COLUMNS, INDEXES]) {
        await migrate(pool, { steps });
        old.unshift(await accept());
    }
    const migrating = await pool.connect();
    await migrating.query('begin');
    await migrating.query(migrationFiles()[INDEXES.length]?.sql ?? '');
    const accepting = accept();
    await until(async () => {
        const { rows } = await pool.query(
            'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted',
        );
        return rows.length > 0;
    });
    await migrating.query('commit');
    migrating.release();
    const meanwhile = await accepting;
    await migrate(pool);
    const recent = await accept();
    for (const filter of [{ kind: 'one' }, { since: new Date(0) }, { kind: 'one', until: new Date(Date.now() + 60_000) }]) {
        const listed = await deliveries.list({ ...filter, limit: 10 });
        t.same(
            listed.map(({ id }) => id),
            [recent, meanwhile, ...old],
        );
        t.equal(await deliveries.count(filter, 10_001), 5);
    }
});

t.test('looks for old deliveries by their own index, however many have come since', async (t) => {
    const { url, pool, exporters, deliveries } = await emptyTables(t, BEFORE);
    await exporters.insert(sampleExporter());
    await deliveries.accept([forAll(sampleEvent({ kind: 'rare' }))]);
    await migrate(pool);
    await keep(pool, KEPT);
    await pool.query('vacuum analyze');
    const connection = await explainedConnection(url);
    t.teardown(() => connection.end());
    const explained = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
    for (let run = 0; run < 5; run += 1) {
        const { pages } = await connection.executed(() => explained.list({ kind: 'rare', limit: 51 }));
        t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages`);
    }
    t.equal((await deliveries.list({ kind: 'rare', limit: 51 })).length, 1);
});
