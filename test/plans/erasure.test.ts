import { randomUUID } from 'node:crypto';
import t from 'tap';
import { sampleEvent, sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import { explainedDatabase } from './executed-plans.ts';
import { keep } from './kept-rows.ts';

const FAILED = 20_000;
/** Of tables and indexes; what has failed for good, and is of other events, is none of it. */
const MAX_ROWS = 500;

/** All that is kept, accepted a day ago. */
const FAIL = `
update scanwire.deliveries
set state = 'exhausted', accepted_at = accepted_at - interval '1 day', finished_at = finished_at - interval '1 day'`;

for (const analysed of [true, false]) {
    t.test(`an erasure reads nothing of what other events have failed with, ${analysed ? 'freshly' : 'never'} analysed`, async (t) => {
        const { pool, connection } = await explainedDatabase(t);
        const { exporters, deliveries } = postgresWebhooks({ pool, notify: false });
        const { id } = sampleExporter();
        await exporters.insert(sampleExporter({ id, state: 'stopped', stopReason: 'so that what is accepted is held' }));
        await keep(pool, FAILED);
        await pool.query(FAIL);
        if (analysed) {
            await pool.query('vacuum analyze');
        }
        const erasing = postgresWebhooks({ pool: connection.pool, notify: false }).deliveries;
        for (const run of [1, 2, 3]) {
            const event = sampleEvent({ id: randomUUID() });
            const [accepted] = await deliveries.accept([{ event, recipients: { types: ['investigation'] } }]);
            const { rows, scans } = await connection.executed(async () => t.match(await erasing.erase(event.id), { ended: 1 }));
            t.match(await deliveries.get(accepted?.deliveries[0] ?? ''), { state: 'erased' });
            t.ok(rows < MAX_ROWS || run < 2, `reads ${rows} rows`);
            t.same(
                scans.filter(({ type, table, rows }) => type === 'Seq Scan' && table === 'deliveries' && rows > 0),
                [],
            );
        }
    });
}
