import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { scanwire } from '../support/scanwire.ts';
import { testDatabase } from '../support/test-database.ts';

const RING = JSON.stringify({ current: 'k1', keys: { k1: Buffer.alloc(32, 1).toString('base64') } });

t.test('a command on the database of a host leaves no data folder behind', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const data = join(folder, 'data');
    const env = { DATABASE_URL: database.url, TMPDIR: folder };
    const withRing = { ...env, SCANWIRE_KEY_RING: RING };

    for (const args of [['migrate'], ['workspaces', 'list'], ['exporters', 'list']]) {
        const { code, stderr } = await scanwire([...args, '--data', data], { env });
        t.equal(code, 0, `${args}: ${stderr}`);
        t.same(readdirSync(folder), [], `${args}`);
    }

    t.match(await scanwire(['keys', 'create', 'one', '--data', data], { env: withRing }), { code: 0 });
    t.same(readdirSync(folder), [], 'what was sealed has a ring elsewhere');
    t.match(await scanwire(['keys', 'list', '--data', data], { env }), {
        code: 1,
        stderr: /The key ring does not fit what is stored for .*add the key k1 .*SCANWIRE_KEY_RING/,
    });
    t.same(readdirSync(folder), []);
    t.match(await scanwire(['keys', 'list', '--data', data], { env: withRing }), { code: 0, stdout: /one/ });
    t.notOk(existsSync(data));
});

t.test('a key ring that was made for what a command has sealed stays', async (t) => {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const data = join(folder, 'data');
    const env = { DATABASE_URL: database.url };
    t.match(await scanwire(['keys', 'create', 'one', '--data', data], { env }), { code: 0 });
    t.ok(existsSync(join(data, 'key-ring.json')));
    t.match(await scanwire(['keys', 'list', '--data', data], { env }), { code: 0, stdout: /one/ });
});
