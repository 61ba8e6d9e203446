/** An application that uses up its pool for a while must not have its process taken for dead: others would send what it is sending. */
import type { ServerResponse } from 'node:http';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { postgresStores } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';
import { migratedDatabase } from '../support/migrated-database.ts';

/** Longer than a session lives without a heartbeat, with time for others to take its claims and to send. */
const USED_UP_FOR = 11_000;
const CONNECTIONS = 3;
const KEYS = keyRing({ current: 'k', keys: { k: Buffer.alloc(32, 7) } });

async function started(t: Test, connectionString: string): Promise<{ readonly own: Webhooks; readonly pool: pg.Pool }> {
    const pool = new pg.Pool({ connectionString, max: CONNECTIONS });
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const onError = (): void => {};
    const own = webhooks({
        ...postgresStores({ pool }).webhooks,
        queue: memoryQueue(),
        keyRing: KEYS,
        guard,
        sender: httpSender({ guard }),
        onError,
    });
    t.teardown(async () => {
        await own.close();
        await pool.end();
    });
    await own.start();
    return { own, pool };
}

t.test('a process whose application has used up its pool goes on sending what it has', async (t) => {
    const { url, drop } = await migratedDatabase();
    t.teardown(drop);
    const answers: ServerResponse[] = [];
    const receiver = await countingReceiver(t, (response) => answers.push(response));
    const { own, pool } = await started(t, url);
    await own.work(['default']);
    const { exporter } = await own.exporters.create({ url: receiver.url });
    await own.exporters.start(exporter.id);
    const { deliveries } = await own.publish('idr_investigation_created', investigation);
    await until(() => answers.length === 1);
    const other = await started(t, url);
    await other.own.work(['default']);

    const taken = await Promise.all(Array.from({ length: CONNECTIONS }, () => pool.connect()));
    await new Promise((resolve) => setTimeout(resolve, USED_UP_FOR));
    t.equal(answers.length, 1, 'nobody else sends it');
    for (const client of taken) {
        client.release();
    }
    answers[0]?.writeHead(204).end();
    await until(async () => (await own.deliveries.show(String(deliveries[0]))).state === 'delivered');
    t.equal((await own.deliveries.show(String(deliveries[0]))).attempts, 1);
});
