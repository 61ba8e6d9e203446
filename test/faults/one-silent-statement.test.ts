import { randomBytes } from 'node:crypto';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../adapters/postgres/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { tcpProxy } from '../support/tcp-proxy.ts';

const KIND = 'idr_investigation_created';

/** Longer than a statement is let alone with others behind it, and far below what it is waited for. */
const WITHIN = 2_000;

/** A process that sends for one exporter, whose way to the database goes through a proxy, and one beside it that only accepts. */
async function sendingThroughProxy(t: Test) {
    const database = await migratedDatabase();
    const url = new URL(database.url);
    const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port || 5432) });
    url.hostname = '127.0.0.1';
    url.port = String(proxy.port);
    const pool = new pg.Pool({ connectionString: url.href });
    pool.on('error', () => undefined);

    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const errors: Error[] = [];
    const parts = {
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        onError: (error: Error) => void errors.push(error),
    };
    const engine = webhooks({ ...parts, ...postgresWebhooks({ pool }), queue: memoryQueue() });
    await engine.start();
    await engine.work(['default']);
    const direct = new pg.Pool({ connectionString: database.url });
    const accepting = webhooks({ ...parts, ...postgresWebhooks({ pool: direct }), queue: memoryQueue() });
    t.teardown(async () => {
        await engine.close();
        await accepting.close();
        await pool.end();
        await direct.end();
        await proxy.close();
        await database.drop();
    });
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { exporter } = await engine.exporters.create({ url: receiver.url });
    await engine.exporters.start(exporter.id);

    const publishedBy = async (one: Webhooks): Promise<string> => (await one.publish(KIND, investigation)).deliveries[0] as string;
    const isDelivered = async (id: string): Promise<boolean> => (await accepting.deliveries.show(id)).state === 'delivered';

    /** Resolves once a connection has fallen silent over which this was sent. */
    const silentAt = (sent: string): Promise<void> =>
        new Promise((resolve) => {
            proxy.silenceAt((bytes) => {
                const isSent = bytes.includes(sent);
                if (isSent) {
                    resolve();
                }
                return isSent;
            });
        });
    return {
        proxy,
        published: () => publishedBy(engine),
        publishedElsewhere: () => publishedBy(accepting),
        isDelivered,
        silentAt,
        errors,
    };
}

t.test('outcomes do not wait for one whose connection fell silent as it was recorded', async (t) => {
    const { proxy, published, isDelivered, silentAt, errors } = await sendingThroughProxy(t);
    const fellSilent = silentAt('timings');
    const first = await published();
    await fellSilent;
    for (const id of [await published(), await published()]) {
        await until(() => isDelivered(id), WITHIN);
    }
    t.strictSame(errors, [], 'while the first is waited for');

    proxy.reset();
    await until(() => errors.length > 0, WITHIN);
    await until(() => isDelivered(first), WITHIN);
    t.match(errors, [{ code: 'UNAVAILABLE' }]);
});

t.test('claims do not wait for one whose connection fell silent as it was asked for', async (t) => {
    const { proxy, publishedElsewhere, isDelivered, silentAt, errors } = await sendingThroughProxy(t);
    const fellSilent = silentAt('"holds"');
    await publishedElsewhere();
    await fellSilent;
    for (const id of [await publishedElsewhere(), await publishedElsewhere()]) {
        await until(() => isDelivered(id), 2 * WITHIN);
    }
    t.strictSame(errors, [], 'while the first is waited for');

    proxy.reset();
    await until(() => errors.length > 0, WITHIN);
    t.match(errors, [{ code: 'UNAVAILABLE' }]);
});
