import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { redisServer } from '../support/redis-server.ts';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { dataOf, serveIn } from '../support/served.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';
import { testDatabase } from '../support/test-database.ts';

/** A database of its own behind a proxy, and what is sent through that. */
async function watchedDatabase(t: Test) {
    const { url, drop } = await testDatabase();
    const at = new URL(url);
    const proxy: TcpProxy = await tcpProxy({ host: at.hostname, port: Number(at.port || 5432) });
    at.hostname = '127.0.0.1';
    at.port = String(proxy.port);
    const sent = { prepared: 0, listens: 0, beats: 0 };
    proxy.silenceAt((bytes) => {
        const text = bytes.toString('latin1');
        sent.prepared += /scanwire_[0-9a-f]{32}\0/.test(text) ? 1 : 0;
        sent.listens += text.includes('listen "scanwire') ? 1 : 0;
        sent.beats += text.includes('scanwire.heartbeat') ? 1 : 0;
        return false;
    });
    t.teardown(async () => {
        await proxy.close();
        await drop();
    });
    return { url: at.href, sent };
}

t.test('with --pooled or SCANWIRE_POOLED nothing is prepared or listened for', async (t) => {
    const data = dataOf(t);
    const { url, sent } = await watchedDatabase(t);
    const redis = await redisServer(t.testdir(), ['--maxmemory-policy', 'noeviction']);
    t.teardown(() => redis.kill());
    const env = { DATABASE_URL: url, REDIS_URL: redis.url };
    /** @param shows Of what a worker has sent so far, whether it need not go on. */
    const work = async (args: readonly string[], more: Readonly<Record<string, string>>, shows: () => boolean) => {
        const worker = startScanwire(['worker', '--collector', 'default', '--data', data, ...args, '--json'], { env: { ...env, ...more } });
        t.teardown(() => worker.kill('SIGKILL'));
        await nextJson(worker, linesOf(worker));
        sent.beats = 0;
        await until(async () => shows());
        t.equal(await ended(worker, 'SIGTERM'), 0);
    };

    await serveIn(t, env, data, '--pooled');
    // What is not prepared is sent each time as a whole.
    const beats = (): boolean => sent.beats > 2;
    await work(['--pooled'], {}, beats);
    await work([], { SCANWIRE_POOLED: '1' }, beats);
    t.strictSame([sent.prepared, sent.listens], [0, 0]);
    await work([], { SCANWIRE_POOLED: '' }, () => sent.prepared > 0 && sent.listens > 0);
});

t.test('with --pooled a queue on PostgreSQL is refused', async (t) => {
    const { url } = await watchedDatabase(t);
    const refused = await scanwire(['serve', '--pooled', '--port', '0', '--data', dataOf(t)], { env: { DATABASE_URL: url } });
    t.match(refused, { code: 1, stderr: /^scanwire: REDIS_URL is not set: a queue on PostgreSQL listens .*--pooled.*\n$/ });
});
