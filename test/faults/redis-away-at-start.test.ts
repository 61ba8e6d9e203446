import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { countingReceiver } from '../support/counting-receiver.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { redisServer } from '../support/redis-server.ts';
import { ended, scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, get, json, serveIn } from '../support/served.ts';

const KIND = 'idr_investigation_created';

/** Of a collector, in whatever deployment: all keys, of which a worker makes some, and those of jobs that wait or are at work. */
const KEYS = 'KEYS {scanwire:*}:scanwire-default:';
const [KEYS_OF_QUEUE, KEYS_OF_JOBS] = [`${KEYS}*`, `${KEYS}[aw]*`];

/** A data folder with a running exporter, and a Redis that is away. */
async function withoutRedis(t: Test, policy: string, ...more: string[]) {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const redis = await redisServer(folder, ['--maxmemory-policy', policy, ...more]);
    t.teardown(() => redis.kill());
    const data = dataOf(t);
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const database = await migratedDatabase();
    t.teardown(() => database.drop());
    const env = { DATABASE_URL: database.url, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
    const before = await serveIn(t, env, data);
    await json(data, 'exporters', 'create', '--url', receiver.url, '--start');
    await ended(before.server, 'SIGTERM');
    return { redis, data, receiver, env: { ...env, REDIS_URL: redis.url } };
}

/** Resolves when it says this on stderr. */
function says(child: ChildProcess, pattern: RegExp): Promise<void> {
    let said = '';
    return new Promise((resolve) => {
        child.stderr?.on('data', (text) => {
            said += text;
            if (pattern.test(said)) {
                resolve();
            }
        });
    });
}

t.test('with Redis away the server starts, answers and accepts, and delivers when it comes', async (t) => {
    const { redis, data, receiver, env } = await withoutRedis(t, 'noeviction');
    await redis.kill();
    const { server, served } = await serveIn(t, env, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    t.equal((await get(served, '/rest_api/v2/workspaces', key)).status, 200);
    t.match(await json(data, 'events', 'publish', KIND, fixture('events/investigation.json')), { deliveries: [String] });
    const away = await get(served, '/-/ready', '');
    t.equal(away.status, 503);
    t.match(JSON.parse(away.body), { ready: false, reasons: [{ part: 'queue', code: 'UNAVAILABLE' }] });

    await redis.start();
    await receiver.received(KIND);
    t.strictSame(receiver.kinds, ['test', KIND]);
    t.strictSame(await get(served, '/-/ready', ''), { status: 200, body: '{"ready":true,"reasons":[]}' });
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('a Redis that evicts is refused at the start; one that comes later gets no jobs until it is mended', async (t) => {
    const { redis, data, receiver, env } = await withoutRedis(t, 'allkeys-lru');
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env }), {
        code: 1,
        stderr: /^scanwire: Redis has maxmemory-policy allkeys-lru/m,
    });

    await redis.kill();
    const { server, served } = await serveIn(t, env, data);
    const refused = says(server, /Redis has maxmemory-policy allkeys-lru/);
    await json(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await redis.start();
    await refused;
    t.match(await redis.command(KEYS_OF_JOBS), /^\*0/);
    t.strictSame(receiver.kinds, ['test']);
    const message = 'The queue gets no jobs as its server is set up: the log says why';
    t.strictSame(await get(served, '/-/ready', ''), {
        status: 503,
        body: JSON.stringify({ ready: false, reasons: [{ part: 'queue', code: 'MISCONFIGURED', message }] }),
    });

    await redis.command('CONFIG SET maxmemory-policy noeviction');
    await receiver.received(KIND);
    t.match(await redis.command(KEYS_OF_QUEUE), /^\*[1-9]/);
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('a Redis that refuses the password is refused at the start', async (t) => {
    const { redis, data, env } = await withoutRedis(t, 'noeviction');
    const url = new URL(redis.url);
    url.password = 'wrong';
    await redis.command('CONFIG SET requirepass right');
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env: { ...env, REDIS_URL: url.href } }), {
        code: 1,
        stderr: /^scanwire: Redis refused the user or the password$/m,
    });
});

t.test('one that comes later and refuses the password gets no jobs, which log and readiness say', async (t) => {
    const { redis, data, receiver, env } = await withoutRedis(t, 'noeviction', '--requirepass', 'right');
    const url = new URL(redis.url);
    url.password = 'wrong';
    await redis.kill();
    const { server, served } = await serveIn(t, { ...env, REDIS_URL: url.href }, data);
    const refused = says(server, /Redis refused the user or the password/);
    await json(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await redis.start();
    await refused;
    t.match(JSON.parse((await get(served, '/-/ready', '')).body), { ready: false, reasons: [{ part: 'queue', code: 'MISCONFIGURED' }] });
    t.strictSame(receiver.kinds, ['test']);
    t.equal(await ended(server, 'SIGTERM'), 0);
});
