import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { type RedisServer, redisServer } from '../support/redis-server.ts';
import { assertSameDuplicates } from './support/duplicates.ts';
import { publishMany } from './support/investigations.ts';
import { json, type ReceiverProcess, type Running, receiver, serve, start } from './support/processes.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

interface Deployment {
    readonly data: string;
    readonly to: ReceiverProcess;
    readonly redis: RedisServer;
    /** A worker of the collector `remote`. */
    readonly first: Running;
    /** Starts another one. */
    worker(): Promise<Running>;
}

/**
 * A server on a Redis and a database of its own, with a running exporter on a collector that the server does not serve. Its
 * receiver answers so many messages and holds back the answers of all later ones.
 */
async function deployment(t: Test, answered?: number): Promise<Deployment> {
    const folder = temporaryFolder(t);
    const data = `${folder}/data`;
    const database = await migratedDatabase();
    const redis = await redisServer(folder);
    t.teardown(async () => {
        await redis.kill();
        await database.drop();
    });
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
    const to = await receiver(t, folder, answered);
    await serve(t, data, { env });
    const worker = () => start(t, ['worker', '--collector', 'remote', '--concurrency', '20', '--data', data], /remote/, env);
    const first = await worker();
    await json(['exporters', 'create', '--url', to.url, '--collector', 'remote', '--start', '--data', data]);
    return { data, to, redis, first, worker };
}

t.test('loses nothing when one of two workers is killed in mid-flight, and the other goes on', async (t) => {
    const { data, to, first: doomed, worker } = await deployment(t, 30);
    await worker();
    const ids = await publishMany(data, 400);
    await to.holding();
    await doomed.stop('SIGKILL');
    t.ok(to.investigations().size < 400, 'killed before the end');

    to.release();
    await until(() => to.investigations().size === ids.length);
    assertSameDuplicates(t, to.messages());
});

t.test('shares the work between two workers and finishes what is in flight on SIGTERM', async (t) => {
    const { data, to, first, worker } = await deployment(t, 30);
    const workers = [first, await worker()];
    await publishMany(data, 200);
    await to.holding();
    const stopped = workers.map((each) => each.stop('SIGTERM'));
    to.release();
    t.strictSame(await Promise.all(stopped), [0, 0]);

    const arrived = to.investigations().size;
    const deliveries = await json<{ state: string; kind: string }[]>(['deliveries', 'list', '--limit', '1000', '--data', data]);
    const delivered = deliveries.filter(({ state, kind }) => state === 'delivered' && kind !== 'test');
    t.equal(delivered.length, arrived, 'every message that arrived is recorded as delivered');
    t.equal(deliveries.filter(({ state }) => state === 'sending').length, 0);

    await worker();
    await until(() => to.investigations().size === 200);
    t.equal(to.messages().filter(({ headers }) => headers['x-vendor-event'] !== 'test').length, 200, 'nothing was sent twice');
});

t.test('loses nothing when Redis forgets everything with deliveries waiting, and needs no restart', async (t) => {
    const { data, to, redis, first, worker } = await deployment(t, 10);
    await first.stop('SIGTERM');
    const ids = await publishMany(data, 200);
    await worker();
    await to.holding();
    t.match(await redis.command('FLUSHALL'), /OK/);
    to.release();
    await until(() => to.investigations().size === ids.length);
    assertSameDuplicates(t, to.messages());
});

t.test('accepts events while Redis is down and delivers them when it is back', async (t) => {
    const { data, to, redis } = await deployment(t);
    await redis.kill();
    await publishMany(data, 50);
    t.equal(to.investigations().size, 0);
    await redis.start();
    await until(() => to.investigations().size === 50);
});
