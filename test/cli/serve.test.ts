import { randomBytes } from 'node:crypto';
import t from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, get, json, said, serve, usedDataOf } from '../support/served.ts';

t.test('says in one line why it cannot start', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const port = new URL(served.url).port;
    const inUse = await scanwire(['serve', '--data', `${data}-2`, '--port', port]);
    t.match(inUse, { code: 1, stderr: new RegExp(`^scanwire: Port ${port} of 127.0.0.1 is in use: choose another with --port\\n$`) });
    t.equal(await ended(server, 'SIGINT'), 0);

    const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env }), { code: 1, stderr: /^scanwire: [^\n]+\n$/ });
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env: { SCANWIRE_EGRESS_ALLOW: 'a b' } }), {
        code: 1,
        stderr: /^scanwire: SCANWIRE_EGRESS_ALLOW: Entry 1 of [^\n]*\n$/,
    });
});

t.test('starts on nothing that its key ring does not open, be it by id or by bytes', async (t) => {
    const data = dataOf(t);
    const [k1, k2] = [randomBytes(32), randomBytes(32)];
    const run = (current: string, keys: Record<string, Buffer>, ...args: string[]) => {
        const encoded = Object.entries(keys).map(([id, key]) => [id, key.toString('base64')]);
        const ring = JSON.stringify({ current, keys: Object.fromEntries(encoded) });
        return said([...args, '--data', data], { env: { SCANWIRE_KEY_RING: ring, SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' } });
    };
    const created = await run('k1', { k1 }, 'exporters', 'create', '--url', 'http://127.0.0.1:9/', '--json');
    const { id } = JSON.parse(created.stdout) as { id: string };
    await run('k2', { k1, k2 }, 'exporters', 'update', id, '--secret', 'another secret');

    t.match(await run('k2', { k2 }, 'serve', '--port', '0'), {
        code: 1,
        stderr: /^scanwire: .*Missing key k1 in the key ring; add the key k1 .*--data/,
    });
    t.match(await run('k2', { k1: randomBytes(32), k2 }, 'serve', '--port', '0'), {
        code: 1,
        stderr: /^scanwire: .*key k1: the key has other bytes.*--data/,
    });
    t.match(await run('k2', { k1, k2: randomBytes(32) }, 'keys', 'create', 'ci'), { code: 1, stderr: /key k2: the key has other bytes/ });
    t.match(await run('k2', { k1, k2 }, 'keys', 'create', 'ci'), { code: 0 });
});

t.test('lets commands work on the stores where no server runs', async (t) => {
    const data = await usedDataOf(t);
    const key = await json<{ id: string; key: string }>(data, 'keys', 'create', 'offline');
    t.match(await json(data, 'keys', 'list'), [{ id: key.id, name: 'offline' }]);
    t.match(await json(data, 'import', fixture('scans/udp.xml')), { workspace: { name: 'default' }, hosts: { new: 1 } });
    t.match(await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json')), { deliveries: [] });

    const { server, served } = await serve(t, data);
    t.equal((await get(served, '/rest_api/v2/workspaces', key.key)).status, 200);
    t.equal(await ended(server, 'SIGINT'), 0);
});
