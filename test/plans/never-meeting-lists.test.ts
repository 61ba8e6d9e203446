import t from 'tap';
import { forAll, sampleEvent, sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { DeliveryFilter } from '../../lib/webhooks/deliveries/deliveries.ts';
import { migratedPool } from '../support/migrated-database.ts';
import { explainedConnection, neverVacuum } from './executed-plans.ts';
import { keep } from './kept-rows.ts';

/** The most pages that a page of a list may ask for. */
const MAX_PAGES = 300;
const KEPT = 30_000;

/** Each second one of another kind, which timed out until it was given up: their number is changed as whoever ends them does. */
const HALF_EXHAUSTED = `
with changed as (
    update scanwire.deliveries d set kind = 'other', state = 'exhausted', last_code = 'timeout', finished_at = scanwire.now()
    where d.seq % 2 = 0
    returning d.exporter_id
)
insert into scanwire.delivery_count_changes (exporter_id, state, code, kind, count)
select c.exporter_id, n.state, n.code, n.kind, n.sign * count(*)
from changed c
cross join (
    values ('delivered', 'delivered', 'idr_investigation_created', -1), ('exhausted', 'timeout', 'other', 1)
) n (state, code, kind, sign)
group by 1, 2, 3, 4, n.sign`;

t.test('pages of two frequent conditions that never meet read little of what is kept', async (t) => {
    const pool = await migratedPool(t, {});
    await neverVacuum(pool);
    const { exporters, deliveries } = postgresWebhooks({ pool, notify: false });
    const [one, other] = [sampleExporter(), sampleExporter()];
    await exporters.insert(one);
    await keep(pool, KEPT);
    await pool.query(`begin; set local scanwire.counted = 'yes'; ${HALF_EXHAUSTED}; commit`);
    await exporters.insert(other);
    await deliveries.accept([forAll(sampleEvent({ kind: 'third' }))]);
    await pool.query('vacuum analyze');

    const connection = await explainedConnection(String(pool.options.connectionString));
    t.teardown(() => connection.end());
    const explained = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
    const kind = 'idr_investigation_created';
    const asked: readonly (readonly [DeliveryFilter, number])[] = [
        [{ state: 'delivered', outcome: 'timeout' }, 0],
        [{ state: 'exhausted', outcome: 'delivered' }, 0],
        [{ state: 'delivered', kind: 'other' }, 0],
        [{ outcome: 'delivered', kind: 'other' }, 0],
        [{ outcome: 'timeout', kind }, 0],
        [{ state: 'exhausted', kind, since: new Date(0) }, 0],
        [{ exporterId: other.id, kind }, 0],
        [{ exporterIds: [other.id], kind: 'other', until: new Date(Date.now() + 60_000) }, 0],
        [{ exporterId: other.id, kind: 'third' }, 1],
        [{ kind: 'third', exporterIds: [one.id, other.id] }, 2],
        [{ state: 'exhausted', outcome: 'timeout', kind: 'other', exporterId: one.id }, 51],
        [{ state: 'delivered', outcome: 'delivered', kind }, 51],
    ];
    for (const [filter, found] of asked) {
        for (let run = 0; run < 7; run += 1) {
            const { pages } = await connection.executed(async () => {
                t.equal((await explained.list({ ...filter, limit: 51 })).length, found, JSON.stringify(filter));
            });
            // A connection learns what it needs of the catalogue.
            t.ok(pages <= MAX_PAGES || run < 2, `${pages} pages for ${JSON.stringify(filter)}`);
        }
    }
});
