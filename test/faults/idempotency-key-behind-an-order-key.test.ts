/** A publish that waits for the idempotency key of an open transaction has no order key meanwhile that the transaction may ask for. */
import pg from 'pg';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { postgresStores } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { investigation } from '../support/investigation.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

const KIND = 'idr_investigation_created';
const BODY = { ...investigation };

t.test('a transaction goes on that needs the order key of an event whose idempotency key it has', async (t) => {
    const { url, drop } = await migratedDatabase();
    const pool = new pg.Pool({ connectionString: url, max: 4 });
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const engine = webhooks({
        ...postgresStores({ pool }).webhooks,
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: Buffer.alloc(32, 7) } }),
        guard,
        sender: httpSender({ guard }),
        onError: () => {},
    });
    const watching = new pg.Pool({ connectionString: url, max: 1 });
    // The transactions of the application have connections of their own: one of them notices at once that it is in a cycle.
    const applications = new pg.Pool({ connectionString: url, max: 2, options: '-c deadlock_timeout=200ms' });
    t.teardown(async () => {
        await engine.close();
        await Promise.all([pool.end(), watching.end(), applications.end()]);
        await drop();
    });
    const { exporter } = await engine.exporters.create({ url: 'http://127.0.0.1:9/', ordered: true });
    await engine.exporters.start(exporter.id, { wait: false });
    await engine.exporters.pause(exporter.id);
    const untilWaits = (kind: string): Promise<void> =>
        until(async () => {
            const { rows } = await watching.query(
                'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted and l.locktype = $1',
                [kind],
            );
            return rows.length > 0;
        });
    // Locks of order keys are taken in the order of their digests.
    const { rows } = await watching.query<{ key: string }>("select key from unnest('{a,b}'::text[]) key order by hashtext(key)");
    const [first = '', second = ''] = rows.map(({ key }) => key);

    const holder = await applications.connect();
    await holder.query('begin');
    await engine.publish(KIND, BODY, { orderKey: first, tx: holder });
    const tx = await applications.connect();
    await tx.query('begin');
    const together = engine.publishAll(
        [first, second].map((orderKey) => ({ kind: KIND, body: BODY, orderKey, idempotencyKey: `of ${orderKey}` })),
        { tx },
    );
    await untilWaits('advisory');
    const repeated = engine.publish(KIND, BODY, { orderKey: second, idempotencyKey: `of ${second}` });
    await untilWaits('transactionid');
    await holder.query('commit');
    holder.release();
    const [, event] = await together.catch((error) => {
        t.error(error);
        return [];
    });
    await tx.query('commit');
    tx.release();
    t.equal((await repeated).eventId, event?.eventId);
});
