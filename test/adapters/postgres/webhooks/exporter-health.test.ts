import { randomUUID } from 'node:crypto';
import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { type PoolLike, postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { healths } from '../../../../adapters/postgres/webhooks/exporter-health.ts';
import type { Executor } from '../../../../lib/transaction.ts';
import { MAX_COUNTED } from '../../../../lib/webhooks/exporters/exporter-health.ts';
import { databases } from '../databases.ts';

const EXPORTERS = 20;
const IN_FLIGHT = 1_000;

/** Of a plan with what it did. */
interface Node {
    readonly 'Node Type': string;
    readonly 'Actual Rows': number;
    readonly 'Actual Loops': number;
    readonly 'Rows Removed by Filter'?: number;
    readonly Plans?: readonly Node[];
}

for (const { name, openMigrated } of databases) {
    t.test(`looks at a bounded part of a long backlog on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        const store = postgresWebhooks({ pool });
        const { id } = sampleExporter();
        await store.exporters.insert(sampleExporter({ id, ordered: true }));

        const add = (count: number, state: string, priority: number, age: string) =>
            pool.query(
                `with added as (
                    insert into scanwire.events (id, kind, body, created_at)
                    select gen_random_uuid(), 'kind', '{}', scanwire.now() - $4::interval from generate_series(1, $1) returning id, created_at
                )
                insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state)
                select id, $5, created_at, $3, 'default', $2 from added`,
                [count, state, priority, age, id],
            );
        await add(20_000, 'delivered', 1, '2 minutes');
        await add(MAX_COUNTED + 2_000, 'pending', 1, '2 hours');
        await add(300, 'pending', 1, '2 minutes');

        const { backlog } = present(await store.exporters.health(id));
        t.match(backlog, { more: true, waiting: MAX_COUNTED + 300, ages: { tenMinutes: 300, day: MAX_COUNTED, older: 0 } });
        await add(MAX_COUNTED + 2_000, 'pending', 2, '30 minutes');
        t.match(await store.exporters.health(id), { backlog: { more: true, waiting: 2 * MAX_COUNTED + 300 } });

        await add(MAX_COUNTED + 2_000, 'pending', 3, '2 hours');
        await add(300, 'pending', 3, '2 minutes');
        const ages = { tenMinutes: 600, hour: MAX_COUNTED, day: 2 * MAX_COUNTED };
        t.match(await store.exporters.health(id), { backlog: { more: true, waiting: 3 * MAX_COUNTED + 600, ages } });

        await store.exporters.update(id, { ordered: false });
        t.match(await store.exporters.health(id), { backlog: { more: true, waiting: 3 * MAX_COUNTED + 600, ages } }, 'until it is let go');

        const read = await readFor(pool, [id]);
        t.ok(read <= 5 * MAX_COUNTED, `${read} rows read of ${20_000 + 3 * MAX_COUNTED + 6_600}`);
    });

    t.test(`reads what is in flight once for many exporters on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        const store = postgresWebhooks({ pool });
        const ids: string[] = [];
        for (let number = 0; number < EXPORTERS; number += 1) {
            const exporter = sampleExporter();
            await store.exporters.insert(exporter);
            ids.push(exporter.id);
        }
        await pool.query(
            `insert into scanwire.deliveries (event_id, exporter_id, due_at, priority, collector, state)
            select gen_random_uuid(), e.id, scanwire.now(), 1, 'default', 'queued' from scanwire.exporters e cross join generate_series(1, $1)`,
            [IN_FLIGHT / EXPORTERS],
        );
        const read = await readFor(pool, ids);
        t.ok(read <= 2 * IN_FLIGHT, `${read} rows read of ${IN_FLIGHT} in flight`);
        for (const id of ids) {
            t.match(await store.exporters.health(id), { inFlight: IN_FLIGHT / EXPORTERS });
        }
    });
}

/** How many rows are read to tell how these fare. */
async function readFor(pool: PoolLike, ids: readonly string[]): Promise<number> {
    const plan: { rows: readonly { 'QUERY PLAN': readonly [{ Plan: Node }] }[] } = { rows: [] };
    const explaining = {
        query: async <Row>(sql: string, values?: unknown[]) => {
            Object.assign(plan, await pool.query(`explain (analyze, format json) ${sql}`, values));
            return { rows: [] as Row[], rowCount: 0 };
        },
    };
    await healths(explaining, ids);
    return rowsRead(present(plan.rows[0])['QUERY PLAN'][0].Plan);
}

function rowsRead(node: Node): number {
    const own = /Scan/.test(node['Node Type']) && !/CTE|Subquery|Function/.test(node['Node Type']);
    const rows = own ? (node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0)) * node['Actual Loops'] : 0;
    return rows + (node.Plans ?? []).reduce((sum, child) => sum + rowsRead(child), 0);
}

t.test('asks one by one for those of which many wait, where there are others: on the embedded database everybody waits', async (t) => {
    const ids = Array.from({ length: 30 }, () => randomUUID());
    const [retried, tried, gone] = ids as [string, string, string];
    const asked: [readonly string[], number][] = [];
    const db: Executor = {
        async query<Row>(_text: string, [some, , most] = [] as unknown[]) {
            asked.push([some as string[], most as number]);
            const rows = (some as string[]).map((id) => ({
                id,
                at: new Date(),
                counted: id === tried ? [{ age: 'hour', count: Math.min(most as number, 999) + 1, oldest: new Date().toISOString() }] : [],
                moreRetries: (id === retried || id === gone) && most !== MAX_COUNTED,
            }));
            return { rows: rows.filter(({ id }) => id !== gone || asked.length === 1) as Row[], rowCount: rows.length };
        },
    };
    const found = await healths(db, [...ids, 'no id']);
    t.strictSame([...found.keys()], [...ids.slice(0, 2), ...ids.slice(3)]);
    t.match(found.get(tried), { backlog: { waiting: 1_000, more: false } });
    t.strictSame(asked, [
        [ids, 200],
        [[retried], MAX_COUNTED],
        [[tried], MAX_COUNTED],
        [[gone], MAX_COUNTED],
    ]);
});
