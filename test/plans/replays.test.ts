import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import { explainedDatabase } from './executed-plans.ts';
import { keep } from './kept-rows.ts';

/** What has failed when a replay is planned: the first third for good, and the others wait for another try. */
const FAILED = 9_000;
const STEP = 10;
/** Deliveries that one statement looks at to count what a replay has. */
const MOST_AT_ONCE = 5_000;
/** The most that one of a step may take. To look through what has failed for good, or waits, takes as many pages as there are rows of it. */
const MAX_PAGES = 60;

const FAIL = `
with numbered as (
    select d.id, row_number() over (order by d.seq) as number from scanwire.deliveries d
)
update scanwire.deliveries d
set
    state = case when n.number <= ${FAILED / 3} then 'exhausted' else 'pending' end,
    finished_at = case when n.number <= ${FAILED / 3} then d.finished_at end,
    priority = 2,
    due_at = scanwire.now() + interval '1 hour'
from numbered n
where d.id = n.id`;

/** Half of what waits, each as if its next try had been the last. */
const FAIL_AGAIN = `
update scanwire.deliveries d
set state = 'exhausted', finished_at = scanwire.now()
where d.state = 'pending' and d.queued_at is not null and d.seq % 2 = 0`;

/** The deliveries of one exporter, all of which have failed, and how they are replayed. @param more Statements that store what lies beside them. */
async function failedDeliveries(t: Test, { analysed, more }: { readonly analysed: boolean; readonly more?: string }) {
    const { pool, connection } = await explainedDatabase(t);
    const { exporters } = postgresWebhooks({ pool, notify: false });
    const { id } = sampleExporter();
    await exporters.insert(sampleExporter({ id }));
    await keep(pool, FAILED);
    for (const statement of [FAIL, more, analysed ? 'vacuum analyze' : undefined]) {
        await (statement !== undefined && pool.query(statement));
    }
    return { id, pool, connection, replays: present(postgresWebhooks({ pool: connection.pool, notify: false }).deliveries.replays) };
}

for (const analysed of [true, false]) {
    t.test(`a step of a replay costs no more for what it leaves to others, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { id, pool, connection, replays } = await failedDeliveries(t, { analysed });
        const planned = { id: randomUUID(), exporterId: id, failedSince: new Date(0), rate: 1_000 };
        const pieces = await connection.each(() => replays.plan(planned));
        const { total } = await replays.get(planned.id);
        t.equal(total, FAILED);
        const counting = pieces.filter(({ statement }) => /counted/.test(statement));
        t.ok(counting.length > 4, 'is counted in pieces');
        t.ok(
            counting.every(({ rows }) => rows <= 4 * MOST_AT_ONCE),
            'each of which looks at so many at most, and their events',
        );
        t.equal(await replays.count(planned), FAILED);

        let done = 0;
        const steps = async (what: string): Promise<void> => {
            for (let run = 0; run < 7; run += 1) {
                await pool.query(`update scanwire.replays set paid_until = scanwire.now() - interval '1 second'`);
                const { pages, scans } = await connection.executed(() => replays.advance(STEP));
                done += STEP;
                t.match(await replays.list(1), [{ done, total }]);
                t.ok(pages <= STEP * MAX_PAGES || run < 2, `${pages} pages for ${what}`);
                const whole = scans.filter(
                    ({ type, table }) => type === 'Seq Scan' && ['attempts', 'deliveries', 'events'].includes(table),
                );
                t.same(whole, [], 'reads no table as a whole');
            }
        };
        await steps('what has failed for good');
        await pool.query(`update scanwire.replays set after_seq = (
            select d.seq from scanwire.deliveries d where d.state = 'exhausted' order by d.seq desc offset 2 limit 1
        )`);
        await steps('what waits for another try');
        await pool.query(FAIL_AGAIN);
        await steps('what waits, beside what has failed since');
    });
}

/** Waits for another try since before what is replayed had failed. */
const FAILED_BEFORE = `
insert into scanwire.deliveries (
    event_id, kind, accepted_at, exporter_id, due_at, queued_at, priority, attempts, round, collector, state, last_code
)
select
    d.event_id, d.kind, d.accepted_at, d.exporter_id, scanwire.now() + interval '1 minute', scanwire.now() - interval '1 day', 2, 9, 9, d.collector,
    'pending', 'client_error'
from scanwire.deliveries d`;

for (const analysed of [true, false]) {
    t.test(`a step of a replay costs no more for what waits and is none of it, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { id, pool, connection, replays } = await failedDeliveries(t, { analysed, more: FAILED_BEFORE });
        const planned = { id: randomUUID(), exporterId: id, failedSince: new Date(Date.now() - 3_600_000), rate: 1_000 };
        await replays.plan(planned);
        const step = async (size: number): Promise<number> => {
            await pool.query(`update scanwire.replays set paid_until = scanwire.now() - interval '1 second'`);
            return (await connection.executed(() => replays.advance(size))).pages;
        };

        for (let run = 0; run < 7; run += 1) {
            const pages = await step(STEP);
            t.ok(pages <= STEP * MAX_PAGES || run < 2, `${pages} pages for what has failed for good`);
        }
        await pool.query('update scanwire.replays set after_seq = last_seq');
        for (let run = 0; run < 7; run += 1) {
            const pages = await step(STEP);
            t.ok(pages <= STEP * MAX_PAGES || run < 2, `${pages} pages for what waits for another try`);
        }

        for (let run = 0; run < 20 && (await replays.get(planned.id)).state === 'running'; run += 1) {
            await step(1_000);
        }
        t.match(await replays.get(planned.id), { state: 'done', done: 7 * STEP + (2 * FAILED) / 3 });
    });
}
