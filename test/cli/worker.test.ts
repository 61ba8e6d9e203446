import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { freePort } from '../support/free-port.ts';
import { redisServer } from '../support/redis-server.ts';
import { ended, linesOf, nextJson, scanwire, scanwireEach, startScanwire } from '../support/scanwire.ts';
import { get, serveIn } from '../support/served.ts';
import { testDatabase } from '../support/test-database.ts';

const EVENT = fileURLToPath(new URL('../../../fixtures/events/investigation.json', import.meta.url));

t.test('sends for its collector, with the key ring of the data folder, and ends at SIGTERM', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const data = join(folder, 'data');
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const redis = await redisServer(folder, ['--maxmemory-policy', 'noeviction']);
    t.teardown(() => redis.kill());

    const receiver = startScanwire(['listen', '--port', '0', '--secret', 'shared secret', '--json']);
    t.teardown(() => receiver.kill('SIGKILL'));
    const messages = linesOf(receiver);
    const { listening } = (await nextJson(receiver, messages)) as { listening: string };
    const env = { DATABASE_URL: database.url, REDIS_URL: redis.url, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };

    const orphan = await scanwire(['worker', '--collector', 'edge', '--data', data], { env });
    t.match(orphan, { code: 1, stderr: /^scanwire: No key ring: set SCANWIRE_KEY_RING.*\n$/ });

    const create = [
        'exporters',
        'create',
        '--url',
        listening,
        '--secret',
        'shared secret',
        '--collector',
        'edge',
        '--data',
        data,
        '--json',
    ];
    const { id } = JSON.parse((await scanwire(create, { env })).stdout) as { id: string };

    const stranger = await scanwire(['keys', 'create', 'ci', '--data', join(folder, 'elsewhere')], { env });
    t.match(stranger, {
        code: 1,
        stderr: /^scanwire: The key ring does not fit what is stored for exporter:\S+: Missing key (k-\w+) in the key ring; add the key \1 .*--data.*\n$/,
    });
    t.notOk(existsSync(join(folder, 'elsewhere')), 'no ring is left that would be taken for that of the database');

    const early = await scanwire(['worker', '--collector', 'edge', '--data', data], { env });
    t.match(early, { code: 1, stderr: /^scanwire: No host has stored its settings yet.*\n$/ });
    const host = await serveIn(t, env, data, '--max-requests', '1');
    const { key } = JSON.parse((await scanwire(['keys', 'create', 'ci', '--data', data, '--json'], { env })).stdout) as { key: string };
    const [first, second] = [await get(host.served, '/rest_api/v2/base', key), await get(host.served, '/rest_api/v2/base', key)];
    t.same([first.status, second.status], [200, 429], 'over Redis, where there is one');
    t.match(await redis.command('KEYS scanwire:requests:*'), /scanwire:requests:/);
    t.equal(await ended(host.server, 'SIGTERM'), 0);

    const { current } = JSON.parse(readFileSync(join(data, 'key-ring.json'), 'utf8')) as { current: string };
    const SCANWIRE_KEY_RING = JSON.stringify({ current, keys: { [current]: randomBytes(32).toString('base64') } });
    const impostor = await scanwire(['worker', '--collector', 'edge', '--data', data], { env: { ...env, SCANWIRE_KEY_RING } });
    t.match(impostor, { code: 1, stderr: new RegExp(`^scanwire: .*key ${current}: the key has other bytes`) });

    const metrics = await freePort();
    const watched = ['--metrics', String(metrics)];
    const worker = startScanwire(
        ['worker', '--collector', 'edge', '--collector', 'other', '--concurrency', '5', ...watched, '--data', data, '--json'],
        { env },
    );
    t.teardown(() => worker.kill('SIGKILL'));
    t.match(await nextJson(worker, linesOf(worker)), { collectors: ['edge', 'other'], concurrency: 5 });

    t.match(JSON.parse((await scanwire(['exporters', 'start', id, '--data', data, '--json'], { env })).stdout), {
        test: { attempt: { code: 'delivered' } },
    });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: true });
    await scanwire(['events', 'publish', 'idr_investigation_created', EVENT, '--data', data], { env });
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });
    const scraped = async (): Promise<string> => await (await fetch(`http://127.0.0.1:${metrics}/metrics`)).text();
    const sent = 'scanwire_attempts_total{outcome="delivered",collector="edge"} 2\n';
    await until(async () => (await scraped()).includes(sent));
    t.match(await (await fetch(`http://127.0.0.1:${metrics}/health/ready`)).json(), { status: 'ok' });

    let log = '';
    worker.stderr?.on('data', (text) => {
        log += text;
    });
    const gone = await countingReceiver(t, (response) => response.writeHead(410).end());
    await scanwireEach([
        { args: ['exporters', 'create', '--url', gone.url, '--collector', 'edge', '--start', '--data', data], env },
        { args: ['events', 'publish', 'idr_investigation_created', EVENT, '--data', data], env },
    ]);
    // Which of the two is told first is not promised.
    for (const line of [
        /^\S+Z Exporter \S+ of collector edge was stopped: The receiver answered 410 Gone$/m,
        /^\S+Z Delivery \S+ to exporter \S+ has failed for good after attempt 1: gone, status 410; it is kept for replay$/m,
    ]) {
        await until(() => line.test(log));
    }
    t.equal(await ended(worker, 'SIGTERM'), 0);
});
