import { randomUUID } from 'node:crypto';
import pg from 'pg';
import t from 'tap';
import { postgresQueue } from '../../adapters/bullmq/index.ts';
import { until } from '../../adapters/contract/assertions.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';
import { testDatabase } from '../support/test-database.ts';

/** Makes the tables of the queue, which may take longer than the questions of a worker that are soon given up. */
async function schemaOfQueue(connectionString: string): Promise<void> {
    const pool = new pg.Pool({ connectionString });
    const queue = postgresQueue({ pool });
    await queue.ready();
    await queue.close();
    await pool.end();
}

t.test('a worker whose listening connection falls silent goes on to take jobs', async (t) => {
    const database = await testDatabase();
    await schemaOfQueue(database.url);
    const url = new URL(database.url);
    const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const pool = new pg.Pool({ connectionString: url.href, query_timeout: 500 });
    const queue = postgresQueue({ pool });
    const seen: string[] = [];
    const handler = async ({ deliveryId }: { readonly deliveryId: string }) => void seen.push(deliveryId);
    await queue.ready();
    // The first one falls silent before the worker has heard that it listens.
    let listens = false;
    proxy.silenceAt((bytes) => {
        listens = bytes.includes('LISTEN bullmq_jobs');
        return listens;
    });
    const worker = await queue.work('default', handler, { concurrency: 1 });
    t.teardown(async () => {
        proxy.reset();
        await worker.close();
        await queue.close();
        await pool.end();
        await proxy.close();
        await database.drop();
    });
    const added = async (): Promise<string> => {
        const deliveryId = randomUUID();
        const job = { collector: 'default', deliveryId, attempt: 1, singleAttempt: false, reservation: null };
        await until(() =>
            queue.add([job]).then(
                () => true,
                () => false,
            ),
        );
        return deliveryId;
    };
    await until(() => listens);
    const first = await added();
    await until(() => seen.includes(first));

    // whatever the worker is just asking or waiting for: the next job, or to be told of one
    for (let round = 0; round < 5; round += 1) {
        proxy.silence();
        const next = await added();
        await until(() => seen.includes(next));
    }
    t.equal(new Set(seen).size, 6);
});
