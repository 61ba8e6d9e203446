import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { redisServer } from '../support/redis-server.ts';
import { ended, endedWithin, linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { dataOf, fixture, json, serveIn } from '../support/served.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';

const KIND = 'idr_investigation_created';
const DRAIN_TIMEOUT = 4;

/** The URL with the proxy in place of its server. */
async function proxied(t: Test, text: string): Promise<{ readonly url: string; readonly proxy: TcpProxy }> {
    const url = new URL(text);
    const proxy = await tcpProxy({ host: url.hostname, port: Number(url.port) });
    t.teardown(() => proxy.close());
    url.host = `127.0.0.1:${proxy.port}`;
    return { url: url.href, proxy };
}

async function surroundings(t: Test) {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const own = await migratedDatabase();
    t.teardown(() => own.drop());
    const server = await redisServer(folder, ['--maxmemory-policy', 'noeviction']);
    t.teardown(() => server.kill());
    const database = await proxied(t, own.url);
    const redis = await proxied(t, server.url);
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
    return { database: database.proxy, redis: redis.proxy, env, data: dataOf(t), receiver: await countingReceiver(t, () => undefined) };
}

t.test('a server ends in time although database, Redis and receiver hang', async (t) => {
    const { database, redis, env, data, receiver } = await surroundings(t);
    const { server } = await serveIn(t, env, data, '--drain-timeout', String(DRAIN_TIMEOUT));
    await json(data, 'exporters', 'create', '--url', receiver.url, '--start');
    await json(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await receiver.received(KIND);
    database.silenceAll();
    redis.silenceAll();
    const { late } = await endedWithin(server, DRAIN_TIMEOUT);
    t.ok(late < 0.5, `ended ${late} s late`);
});

t.test('a worker ends in time although database, Redis and receiver hang', async (t) => {
    const { database, redis, env, data, receiver } = await surroundings(t);
    await serveIn(t, env, data);
    const options = ['--collector', 'edge', '--drain-timeout', String(DRAIN_TIMEOUT), '--data', data, '--json'];
    const worker = startScanwire(['worker', ...options], { env });
    t.teardown(() => worker.kill('SIGKILL'));
    await nextJson(worker, linesOf(worker));
    await json(data, 'exporters', 'create', '--url', receiver.url, '--collector', 'edge', '--start');
    await json(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await receiver.received(KIND);
    database.silenceAll();
    redis.silenceAll();
    const { late } = await endedWithin(worker, DRAIN_TIMEOUT);
    t.ok(late < 0.5, `ended ${late} s late`);
});

t.test('what a stop cuts off is released at once, and no try of its schedule is used up', async (t) => {
    const { env, data, receiver } = await surroundings(t);
    const first = await serveIn(t, env, data, '--drain-timeout', String(DRAIN_TIMEOUT));
    await json(data, 'exporters', 'create', '--url', receiver.url, '--start');
    const published = await json<{ deliveries: string[] }>(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await receiver.received(KIND);
    t.ok((await endedWithin(first.server, DRAIN_TIMEOUT)).late < 0.5);
    const client = new pg.Client(env.DATABASE_URL);
    await client.connect();
    t.teardown(() => client.end());
    const { rows } = await client.query('select state, due_at <= scanwire.now() as due from scanwire.deliveries where id = $1', [
        published.deliveries[0],
    ]);
    t.strictSame(rows, [{ state: 'pending', due: true }], 'whoever comes next sends it at once');

    const second = await serveIn(t, env, data, '--drain-timeout', '1');
    await receiver.received(KIND, 2);
    const shown = () => json<{ history: readonly object[] }>(data, 'deliveries', 'show', published.deliveries[0] ?? '');
    // It is named when it has gone on for half a second.
    await until(async () => (await shown()).history.length === 2);
    t.match(await shown(), {
        history: [
            { number: 1, code: 'interrupted' },
            { number: 2, code: null },
        ],
    });
    await ended(second.server, 'SIGTERM');
});
