import { chmodSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { dataFolder, prepareDataFolder, readIfPresent, readOrCreate, replaceFile } from '../../cli/data-folder.ts';
import { existingKeyRing, storedKeyRing } from '../../cli/stored-key-ring.ts';

const modeOf = (path: string): number => statSync(path).mode & 0o777;

t.test('makes the folder and its files for the owner only', async (t) => {
    const folder = dataFolder(join(t.testdir(), 'a', 'data'));
    await prepareDataFolder(folder);
    await storedKeyRing(folder, {});
    await replaceFile(folder.license, 'text');
    t.equal(modeOf(folder.path), 0o700);
    t.equal(modeOf(folder.keyRing), 0o600);
    t.equal(modeOf(join(folder.path, 'license')), 0o700);
    t.equal(modeOf(folder.license), 0o600);
});

t.test('takes the rights of others away from an empty folder', async (t) => {
    const folder = dataFolder(t.testdir());
    chmodSync(folder.path, 0o777);
    await prepareDataFolder(folder);
    t.equal(modeOf(folder.path), 0o700);
});

t.test('knows what a start that was cut off has left', async (t) => {
    const server = JSON.stringify({ pid: 1, started: '', socket: '/x' });
    const left: NonNullable<Parameters<typeof t.testdir>[0]>[] = [
        { 'server.json': server },
        { 'server.json.1234': '' },
        { 'key-ring.json.1234-5678': '{' },
        { license: {} },
        { license: { 'signing-key.pem.1234': '' } },
        { license: { 'license.jws': '' }, 'notes.txt': 'of the operator' },
        { 'database.lock': JSON.stringify({ pid: 1, started: '' }), database: {} },
        { 'key-ring.json': JSON.stringify({ current: 'a', keys: {} }) },
    ];
    const root = t.testdir(Object.fromEntries(left.entries()));
    for (const [index, files] of left.entries()) {
        const folder = dataFolder(join(root, String(index)));
        chmodSync(folder.path, 0o700);
        await t.resolves(prepareDataFolder(folder), JSON.stringify(files));
    }
});

t.test('leaves the folder of a foreign project alone, whatever its parts are called', async (t) => {
    const foreign: Record<string, NonNullable<Parameters<typeof t.testdir>[0]>> = {
        database: { database: { 'schema.sql': '' }, 'package.json': '{}' },
        license: { license: { 'LICENSE.txt': '' } },
        tls: { tls: { 'key.pem': '' } },
        server: { 'server.json': '{"port":80}', 'key-ring.json': '{"keys":[]}', 'database.lock': '7' },
        file: { license: 'MIT' },
    };
    const root = t.testdir(foreign);
    for (const name of Object.keys(foreign)) {
        const folder = dataFolder(join(root, name));
        chmodSync(folder.path, 0o700);
        await t.rejects(prepareDataFolder(folder), { code: 'MISCONFIGURED', message: /holds something else/ }, name);
    }
});

t.test('leaves a folder alone that holds something else', async (t) => {
    const folder = dataFolder(t.testdir({ 'thesis.txt': 'mine' }));
    chmodSync(folder.path, 0o700);
    const before = modeOf(folder.path);
    await t.rejects(prepareDataFolder(folder), { code: 'MISCONFIGURED', field: 'data' });
    t.equal(modeOf(folder.path), before);
});

t.test('refuses a path that cannot be a folder', async (t) => {
    const path = join(t.testdir({ file: '' }), 'file');
    await t.rejects(prepareDataFolder(dataFolder(path)), { code: 'MISCONFIGURED', field: 'data' });
});

t.test('makes a file once, however many make it at the same time', async (t) => {
    const path = join(t.testdir(), 'file');
    const texts = await Promise.all(['a', 'b', 'c', 'd'].map((text) => readOrCreate(path, () => text)));
    t.equal(new Set(texts).size, 1);
    t.equal(await readIfPresent(path), texts[0]);
    t.same(readdirSync(join(path, '..')), ['file']);
});

t.test('opens with the key ring of a later start what an earlier one sealed', async (t) => {
    const dir = t.testdir();
    const folder = dataFolder(join(dir, 'here'));
    const sealed = (await storedKeyRing(folder, {})).seal('secret', 'context');
    t.equal((await storedKeyRing(folder, {})).open(sealed, 'context'), 'secret');
    const elsewhere = dataFolder(join(dir, 'elsewhere'));
    const variable = { SCANWIRE_KEY_RING: (await readIfPresent(folder.keyRing)) ?? '' };
    t.equal((await storedKeyRing(elsewhere, variable)).open(sealed, 'context'), 'secret');
    t.equal(await readIfPresent(elsewhere.keyRing), null);
});

t.test('makes no two key rings with a key of the same id', async (t) => {
    const dir = t.testdir();
    const [here, elsewhere] = await Promise.all(['here', 'elsewhere'].map((name) => storedKeyRing(dataFolder(join(dir, name)), {})));
    t.not(here?.current, elsewhere?.current);
    t.match(here?.current, /^k-[0-9a-f]{8}$/);
});

t.test('makes no key ring for a worker', async (t) => {
    const folder = dataFolder(t.testdir());
    await t.rejects(existingKeyRing(dataFolder(join(folder.path, 'missing')), {}), { code: 'MISCONFIGURED', field: 'SCANWIRE_KEY_RING' });
    await t.rejects(existingKeyRing(folder, {}), { code: 'MISCONFIGURED', field: 'SCANWIRE_KEY_RING' });
    t.same(readdirSync(folder.path), []);
});

t.test('refuses a damaged key ring without showing it', async (t) => {
    const folder = dataFolder(t.testdir());
    mkdirSync(folder.path, { recursive: true });
    for (const text of [
        '',
        'null',
        '[]',
        '{"current":"k1"}',
        '{"current":"k1","keys":{"k1":"c2VjcmV0"}}',
        '{"current":"k2","keys":{}}',
        's3cret',
    ]) {
        writeFileSync(folder.keyRing, text);
        await t.rejects(storedKeyRing(folder, {}), { code: 'MISCONFIGURED' }, text);
        await t.rejects(storedKeyRing(folder, {}), { message: /^(?!.*(s3cret|c2VjcmV0)).*$/ });
    }
});

t.test('makes no key ring beside a database that another one sealed', async (t) => {
    const folder = dataFolder(t.testdir({ database: {} }));
    await t.rejects(storedKeyRing(folder, {}), { code: 'MISCONFIGURED', field: 'data', message: /key-ring\.json is missing.*put it back/ });
    t.same(readdirSync(folder.path), ['database']);
    await storedKeyRing(folder, { DATABASE_URL: 'postgres://elsewhere' });
    await storedKeyRing(folder, {});
});
