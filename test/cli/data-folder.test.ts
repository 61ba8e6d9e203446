import { mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { dataFolder, prepareDataFolder, readIfPresent, readOrCreate, replaceFile } from '../../cli/data-folder.ts';
import { existingKeyRing, storedKeyRing } from '../../cli/key-ring.ts';

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

t.test('takes the rights of others away from a folder that is its own already', async (t) => {
    const folder = dataFolder(t.testdir({ 'key-ring.json': '{}' }));
    await prepareDataFolder(folder);
    t.equal(modeOf(folder.path), 0o700);
});

t.test('leaves a folder alone that holds something else', async (t) => {
    const folder = dataFolder(t.testdir({ 'thesis.txt': 'mine' }));
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
