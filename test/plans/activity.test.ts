import pg from 'pg';
import t from 'tap';
import { sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { testDatabase } from '../support/test-database.ts';
import { explainedConnection, neverVacuum } from './executed-plans.ts';
import { keep } from './kept-rows.ts';

const HOUR = 3_600_000;
const NOW = Date.UTC(2026, 10, 23, 12);
const BOUNDS = Array.from({ length: 25 }, (_, index) => new Date(NOW + (index - 24) * HOUR));
/** Rows of a slice that are looked at. */
const MAX = 100;
/** A look for a number is some twenty steps of a few pages each, and of a slice so many rows are read. */
const MAX_PAGES = BOUNDS.length * 200 + 3 * MAX * 5;

async function setTime(pool: pg.Pool, hoursAgo: number): Promise<void> {
    const time = new Date(NOW - hoursAgo * HOUR).toISOString();
    await pool.query(
        `create or replace function scanwire.now() returns timestamptz language sql volatile as $$ select timestamptz '${time}' $$`,
    );
}

for (const analysed of [true, false]) {
    t.test(`what became of a day's deliveries costs no more for what is kept, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { url, drop } = await testDatabase();
        const pool = new pg.Pool({ connectionString: url });
        pool.on('error', () => {}); // the pool has ended before its connections have
        await migrate(pool);
        await neverVacuum(pool);
        const { exporters, deliveries } = postgresWebhooks({ pool, notify: false });
        const exporter = sampleExporter();
        await exporters.insert(exporter);
        const connection = await explainedConnection(url);
        t.teardown(async () => {
            await connection.end();
            await pool.end();
            await drop();
        });
        const explained = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
        let rows = 0;
        for (const [hoursAgo, more] of [
            [100, 20_000],
            [20.5, 2_000],
            [0.5, 6_000],
        ] as const) {
            rows += more;
            await setTime(pool, hoursAgo);
            await keep(pool, rows);
        }
        if (analysed) {
            await pool.query('vacuum analyze');
        }

        const other = sampleExporter();
        await exporters.insert(other);
        for (const filter of [{}, { state: 'exhausted' }, { outcome: 'delivered' }, { kind: 'ours' }] as const) {
            for (let run = 0; run < 7; run += 1) {
                const exporterIds = [other.id];
                const listed = await connection.executed(() => explained.list({ ...filter, exporterIds, limit: 51 }));
                const counted = await connection.executed(() => explained.count({ ...filter, exporterIds }, 10_001));
                for (const { pages, scans } of [listed, counted]) {
                    const whole = scans.filter(({ type, table }) => type === 'Seq Scan' && ['events', 'deliveries'].includes(table));
                    t.same(whole, [], 'nor to list or count for an exporter that has none');
                    // A connection learns what it needs of the catalogue.
                    t.ok(pages < 100 || run < 2, `${pages} pages for ${JSON.stringify(filter)}`);
                }
            }
        }

        for (const options of [{ max: MAX }, { max: MAX, exporterId: exporter.id }]) {
            for (let run = 0; run < 7; run += 1) {
                const { pages, scans } = await connection.executed(async () => await explained.activity?.(BOUNDS, options));
                const whole = scans.filter(({ type, table }) => type === 'Seq Scan' && ['events', 'deliveries'].includes(table));
                t.same(whole, [], 'reads no table as a whole');
                t.ok(pages < MAX_PAGES, `${pages} pages`);
            }
            const counted = await deliveries.activity?.(BOUNDS, options);
            const found = counted?.flatMap(({ deliveries }, index) => (deliveries === 0 ? [] : [[index, deliveries]]));
            t.same(found, [
                [3, MAX],
                [23, MAX],
            ]);
        }
    });
}
