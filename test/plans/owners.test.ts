import { randomUUID } from 'node:crypto';
import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import { explainedDatabase } from './executed-plans.ts';

/** A row of 25 is one page and some of an index. */
const MAX_PAGES = 60;

/** As many more of the exporter there is, of a hundred owners in turn. */
const MORE = `do $$
    declare
        columns text := (
            select string_agg(quote_ident(attname), ', ') from pg_attribute
            where attrelid = 'scanwire.exporters'::regclass and attnum > 0 and not attisdropped and attgenerated = '' and attidentity = ''
        );
    begin
        create temp table one as select * from scanwire.exporters;
        for n in 1..2500 loop
            update one set id = gen_random_uuid(), owner = 'owner ' || n % 100;
            execute format('insert into scanwire.exporters (%1$s) select %1$s from one', columns);
        end loop;
    end
$$`;

t.test('the exporters of an owner are found without those of others', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    await postgresWebhooks({ pool, notify: false }).exporters.insert(sampleExporter({ id: randomUUID() }));
    await pool.query(MORE);
    await pool.query('vacuum analyze scanwire.exporters');
    const { exporters } = postgresWebhooks({ pool: connection.pool, notify: false });
    const owner = 'owner 7';
    for (const read of [
        () => present(exporters.page)({ owner, limit: 25, bounds: [], max: 1 }),
        () => present(exporters.summaries)({ owner }),
        () => exporters.list({ owner }),
    ]) {
        for (let run = 0; run < 4; run += 1) {
            const { pages, scans } = await connection.executed(async () => t.equal((await read()).length, 25));
            t.same(
                scans.filter(({ type, table }) => type === 'Seq Scan' && table === 'exporters'),
                [],
            );
            // A connection learns what it needs of the catalogue.
            t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages`);
        }
    }
});

/** As many replays of as many exporters of the owner, of which the list shows the newest, among those of others. */
const REPLAYS = `
insert into scanwire.replays (id, exporter_id, rate, total, created_at, last_seq, paid_until, state, finished_at)
select gen_random_uuid(), e.id, 1, 0, scanwire.now(), 0, scanwire.now(), 'done', scanwire.now()
from generate_series(1, 8) n, scanwire.exporters e`;

t.test('the newest replays of an owner, and of all, are found without the others', async (t) => {
    const { pool, connection } = await explainedDatabase(t);
    await postgresWebhooks({ pool, notify: false }).exporters.insert(sampleExporter({ id: randomUUID() }));
    await pool.query(MORE);
    await pool.query(REPLAYS);
    await pool.query('vacuum analyze scanwire.exporters, scanwire.replays');
    const { exporters, deliveries } = postgresWebhooks({ pool: connection.pool, notify: false });
    const ids = (await exporters.list({ owner: 'owner 7' })).map(({ id }) => id);
    const { list } = present(deliveries.replays);
    // The last page is that of the index of those that run.
    for (const [read, count, most] of [
        [() => list(100, ids), 100, 10 * ids.length + 1],
        [() => list(100, ids.slice(0, 1)), 8, 10 + 1],
        [() => list(100), 100, MAX_PAGES],
    ] as const) {
        for (let run = 0; run < 7; run += 1) {
            const { pages, scans } = await connection.executed(async () => t.equal((await read()).length, count));
            t.same(
                scans.filter(({ type, table }) => type === 'Seq Scan' && table === 'replays'),
                [],
            );
            t.ok(pages <= most || run < 2, `${pages} pages`);
        }
    }
});
