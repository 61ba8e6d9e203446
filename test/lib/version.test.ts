import { readFile } from 'node:fs/promises';
import t from 'tap';
import { VERSION } from '../../lib/version.ts';

t.test('is the version of the package', async (t) => {
    const manifest = JSON.parse(await readFile(new URL('../../../package.json', import.meta.url), 'utf8'));

    t.equal(VERSION, manifest.version);
});
