/** A publish that waits for the idempotency key of an open transaction has no order key meanwhile that the transaction may ask for. */
import pg from 'pg';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { investigation } from '../support/investigation.ts';
import { orderedHost } from '../support/ordered-host.ts';

const KIND = 'idr_investigation_created';
const BODY = { ...investigation };

t.test('a transaction goes on that needs the order key of an event whose idempotency key it has', async (t) => {
    const { engine, url, watching } = await orderedHost(t, 4);
    // The transactions of the application have connections of their own: one of them notices at once that it is in a cycle.
    const applications = new pg.Pool({ connectionString: url, max: 2, options: '-c deadlock_timeout=200ms' });
    t.teardown(() => applications.end());
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
