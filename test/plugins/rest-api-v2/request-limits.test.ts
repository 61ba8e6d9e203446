import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import t, { type Test } from 'tap';
import type { RestApiV2Options } from '../../../plugins/rest-api-v2/index.ts';
import { redisServer } from '../../support/redis-server.ts';
import { type Answer, type Served, served } from './served.ts';

const workspaces = ({ get }: Served, headers?: Record<string, string>): Promise<Answer> =>
    get('/workspaces', headers === undefined ? {} : { headers });

async function limited(t: Test, rateLimit: RestApiV2Options['rateLimit'], instance?: string): Promise<Served> {
    const running = await served({ rateLimit, ...(instance !== undefined && { instance }) });
    t.teardown(() => running.server.stop());
    return running;
}

t.test('says nothing of limits unless there are some', async (t) => {
    const { headers } = await workspaces(await served());
    t.notOk(headers.ratelimit);
    t.notOk(headers['ratelimit-policy']);
});

t.test('tells a key what is left to it and refuses what is too much, on every path', async (t) => {
    const running = await limited(t, { requests: 3, window: 60 });
    const policy = '"requests";q=3;w=60';
    t.match(await workspaces(running), { status: 200, headers: { ratelimit: /^"requests";r=2;t=(60|59)$/, 'ratelimit-policy': policy } });
    t.match(await running.get('/nothing'), { status: 404, headers: { ratelimit: /r=1;/, 'ratelimit-policy': policy } });
    t.match(await running.get('/workspaces?limit=x'), { status: 400, headers: { ratelimit: /r=0;/ } });

    const refused = await workspaces(running);
    t.match(refused, { status: 429, headers: { ratelimit: /r=0;/, 'ratelimit-policy': policy, 'retry-after': Number } });
    t.ok(Number(refused.headers['retry-after']) >= 1 && Number(refused.headers['retry-after']) <= 60);
    t.match(JSON.parse(refused.body), { statusCode: 429, message: 'More than 3 requests in 60 s' });

    const { key } = await running.server.plugins['token-auth'].create('another');
    t.match(await workspaces(running, { token: key }), { status: 200, headers: { ratelimit: /r=2;/ } }, 'each key for itself');
});

t.test('counts nothing of who has no key', async (t) => {
    const running = await limited(t, { requests: 1 });
    for (let times = 0; times < 3; times += 1) {
        const { status, headers } = await workspaces(running, { token: 'wrong' });
        t.equal(status, 403);
        t.notOk(headers.ratelimit);
    }
    t.equal((await workspaces(running)).status, 200);
});

t.test('counts by what the application says, and by address where there is no key', async (t) => {
    const byAgent = await limited(t, { requests: 1, by: ({ headers }) => String(headers['user-agent']) });
    const asked = (agent: string) => workspaces(byAgent, { ...byAgent.headers, 'user-agent': agent });
    t.same([(await asked('a')).status, (await asked('b')).status, (await asked('a')).status], [200, 200, 429]);

    const open = await served({ rateLimit: { requests: 1 }, auth: false });
    t.same([(await workspaces(open)).status, (await workspaces(open)).status], [200, 429]);
});

t.test('counts together over Redis, and each process for itself while that is away', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-limits-'));
    const server = await redisServer(folder);
    t.teardown(async () => {
        await server.kill();
        rmSync(folder, { recursive: true, force: true });
    });
    const redis = new Redis(server.url, { maxRetriesPerRequest: 1, retryStrategy: () => 50 });
    redis.on('error', () => {});
    t.teardown(() => redis.disconnect());
    const rateLimit = { requests: 2, redis, by: () => 'same' };
    const [one, other] = [await limited(t, rateLimit), await limited(t, rateLimit)];
    const logged: unknown[] = [];
    one.server.events.on({ name: 'request', channels: 'app' }, (_, { error, data }) => logged.push(error ?? data));

    t.match(await workspaces(one), { status: 200, headers: { ratelimit: /r=1;/ } });
    t.match(await workspaces(other), { status: 200, headers: { ratelimit: /r=0;/ } });
    t.equal((await workspaces(one)).status, 429);

    await server.kill();
    t.match(await workspaces(one), { status: 200, headers: { ratelimit: /r=1;/ } }, 'this process has counted none of its own');
    t.match(await workspaces(one), { status: 200, headers: { ratelimit: /r=0;/ } });
    t.equal((await workspaces(one)).status, 429, 'the limit is kept without it');
    t.equal(logged.length, 1, 'it is said once, not for each request');
});

t.test('counts each instance of the plugin for itself', async (t) => {
    const [one, other] = [
        await limited(t, { requests: 1, by: () => 'same' }, 'one'),
        await limited(t, { requests: 1, by: () => 'same' }, 'other'),
    ];
    t.same([(await workspaces(one)).status, (await workspaces(other)).status], [200, 200]);
});

t.test('refuses limits that are none', async (t) => {
    await t.rejects(served({ rateLimit: { requests: 0 } }), { code: 'MISCONFIGURED', message: /rateLimit\.requests/ });
    await t.rejects(served({ maxStreams: 0 }), { code: 'MISCONFIGURED', message: /maxStreams/ });
});
