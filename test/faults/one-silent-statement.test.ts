import { randomBytes } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';
import { testDatabase } from '../support/test-database.ts';

const KIND = 'idr_investigation_created';

/** Longer than a statement is let alone with the outcomes of others behind it, and far below what it is waited for. */
const WITHIN = 2_000;

/** A process with one exporter, whose way to the database goes through a proxy. */
async function sendingThroughProxy(t: Test) {
    const database = await testDatabase();
    const url = new URL(database.url);
    const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const pool = new pg.Pool({ connectionString: url.href });
    pool.on('error', () => undefined);
    await migrate(pool);

    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const errors: Error[] = [];
    const engine = webhooks({
        ...postgresWebhooks({ pool }),
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        onError: (error) => errors.push(error),
    });
    await engine.start();
    await engine.work(['default']);
    t.teardown(async () => {
        await engine.close();
        await pool.end();
        await proxy.close();
        await database.drop();
    });
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { exporter } = await engine.exporters.create({ url: receiver.url });
    await engine.exporters.start(exporter.id);

    async function published(): Promise<string> {
        const { deliveries } = await engine.publish(KIND, investigation);
        return deliveries[0] as string;
    }
    const isDelivered = async (id: string): Promise<boolean> => (await engine.deliveries.show(id)).state === 'delivered';
    return { proxy, published, isDelivered, errors };
}

t.test('outcomes do not wait for one whose connection fell silent as it was recorded', async (t) => {
    const { proxy, published, isDelivered, errors } = await sendingThroughProxy(t);
    const fellSilent = new Promise<void>((resolve) => {
        proxy.silenceAt((bytes) => {
            const isOutcome = bytes.includes('timings');
            if (isOutcome) {
                resolve();
            }
            return isOutcome;
        });
    });
    const first = await published();
    await fellSilent;
    for (const id of [await published(), await published()]) {
        await until(() => isDelivered(id), WITHIN);
    }
    t.strictSame(errors, [], 'while the first is waited for');

    proxy.reset();
    // All other connections are gone as well, of which who asks may hear first.
    await until(() => isDelivered(first).catch(() => false), WITHIN);
    t.match(errors, [{ code: 'UNAVAILABLE' }]);
});
