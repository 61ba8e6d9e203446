import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import t, { type Test } from 'tap';
import { testDatabase } from '../support/test-database.ts';

/** Where `import 'scanwire/…'` finds the built package, as it does for whoever installed it. */
const FOLDER = 'build/readme';

const [host = '', stores = '', ...others] = [...readFileSync('README.md', 'utf8').matchAll(/^```js\n(.*?)^```$/gms)].map(
    ([, block = '']) => block,
);

t.equal(others.length, 0, 'every block of the README is run here');

t.test('runs the server of the README as it is pasted', async (t) => {
    const server = run(t, 'host.mjs', host);
    const [printed] = await once(server.stdout as NodeJS.ReadableStream, 'data');
    const [, token = '', url = ''] = /^curl -H 'token: (\S+)' (http:\S+)$/m.exec(String(printed)) ?? [];
    const response = await fetch(url, { headers: { token } });
    t.equal(response.status, 200);
    t.match(await response.json(), [{ name: 'default' }]);
});

t.test('swaps the stores as the README says', async (t) => {
    const { url, drop } = await testDatabase();
    t.after(drop);
    const before = `import pg from 'pg';\nconst pool = new pg.Pool({ connectionString: ${JSON.stringify(url)} });\n`;
    const after =
        '\nconsole.log(typeof inventory.hosts.list, typeof apiKeys.insert, typeof webhooks.deliveries.accept);\nawait pool.end();\n';
    const script = run(t, 'stores.mjs', before + stores + after);
    t.equal(await text(script.stdout as NodeJS.ReadableStream), 'function function function\n');
});

function run(t: Test, name: string, source: string): ChildProcess {
    mkdirSync(FOLDER, { recursive: true });
    writeFileSync(join(FOLDER, name), source);
    const child = spawn(process.execPath, [join(FOLDER, name)], { stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => child.kill('SIGKILL'));
    return child;
}
