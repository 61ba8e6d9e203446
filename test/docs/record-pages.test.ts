import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { certificate } from '../support/certificates.ts';
import { type PageRun, runPage, writePage } from '../support/pages.ts';

/* The pages about records and those whose blocks are tests of their own, run as they are pasted. */

const execute = promisify(execFile);
const RECORDS = readFileSync('fixtures/records/https.jsonl');
const OLD = readFileSync('fixtures/records/old-style.jsonl');

/** Where the files are that the page names. */
function placed(t: Test, files: Readonly<Record<string, Buffer>>, ...made: readonly string[]): Readonly<Record<string, string>> {
    const folder = t.testdir({});
    for (const [name, bytes] of Object.entries(files)) {
        writeFileSync(join(folder, name), bytes);
    }
    return Object.fromEntries([...Object.keys(files), ...made].map((name) => [`'${name}'`, `'${join(folder, name)}'`]));
}

t.test('checks records', async (t) => {
    const page = { with: placed(t, { 'records.jsonl.gz': gzipSync(RECORDS) }), gives: ['lines'] };
    t.match((await runPage('records/check.js', page)).lines.totals, { records: 3, good: 3 });
});

t.test('mends records', async (t) => {
    const paths = placed(t, { 'old.jsonl.gz': gzipSync(OLD) }, 'https.jsonl.gz');
    const { lines } = await runPage('records/mend.js', { with: paths, gives: ['lines'] });
    const written = gunzipSync(readFileSync(String(paths["'https.jsonl.gz'"]).slice(1, -1))).toString();
    t.equal(written.trim().split('\n').length, lines.totals.good);
    t.ok(lines.totals.good > 0);
});

t.test('reads titles', (t) => t.resolves(runPage('records/titles.js', { with: placed(t, { 'records.jsonl': RECORDS }) })));

t.test('captures records', async (t) => {
    const server = createServer(await certificate(), (_, response) => response.end('<title>here</title>')).listen(0, '127.0.0.1');
    t.teardown(() => server.close());
    await once(server, 'listening');
    const place = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const places = { 'https://www.example.com/': `https://${place}/`, "'www.example.com', '10.20.0.7:8443'": `'${place}'` };
    const page: PageRun = { with: { ...places, '10.20.0.0/16': '127.0.0.1' }, gives: ['record'] };
    t.match((await runPage('records/capture.js', page)).record, { host: '127.0.0.1', ip: '127.0.0.1' });
});

t.test('verifies by another library', async (t) => {
    const [secret, body] = ['a secret of the exporter', '{"title":"Weak cipher"}'];
    const signed = new Webhook(Buffer.from(secret).toString('base64')).sign('one', new Date(), body);
    const headers = { 'webhook-id': 'one', 'webhook-timestamp': String(Math.floor(Date.now() / 1000)), 'webhook-signature': signed };
    t.match(await runPage('receivers/standard.js', { given: { body, headers, secret }, gives: ['event'] }), {
        event: { title: 'Weak cipher' },
    });
});

/** What the tests of a page presume, as a module of its own: they run in a process of their own. */
async function resultsOf(t: Test, name: string, presumed: string): Promise<string> {
    const names = [...presumed.matchAll(/^(?:async )?(?:const|let|function) (\w+)/gm)].map(([, one = '']) => one);
    const path = writePage(name, { given: Object.fromEntries(names.map((one) => [one, undefined])) });
    const host = join(path, '..', 'presumed.mjs');
    writeFileSync(host, `${presumed}\nglobalThis.presumed = { ${names.join(', ')} };\n`);
    const args = ['--import', `./${host}`, '--test', '--test-reporter=tap', path];
    const env = { ...process.env, NODE_OPTIONS: '' };
    const { stdout } = await execute(process.execPath, args, { env }).catch((error: { stdout: string }) => {
        t.fail('the tests of the page', { output: error.stdout });
        return error;
    });
    return stdout;
}

t.test('runs the laws of stores as the pages show it', async (t) => {
    const keys = `
import { memoryApiKeys } from 'scanwire/memory';
const pool = {};
const emptyTable = () => {};
// One that tells no time of its own.
const myApiKeys = () => {
    const { now: _, ...keys } = memoryApiKeys();
    return keys;
};
`;
    const inventory = `
import { readOnlyInventory } from 'scanwire/inventory';
import { memoryInventory } from 'scanwire/memory';
const pool = { totalCount: 1, idleCount: 1 };
const tables = {};
const fillTables = async (_, rows) => Object.assign(tables, rows);
const created_at = new Date();
const page = (rows, { after, limit }, isBelow) => rows.filter((row) => row.id > after && isBelow(row)).slice(0, limit).map((row) => ({ created_at, ...row }));
const siteInventory = () =>
    readOnlyInventory({
        workspaces: async (_, at) => page(tables.workspaces, at, () => true),
        hosts: async ([id], at) => page(tables.hosts, at, (row) => row.workspace_id === id),
        services: async (ids, at) => page(tables.services, at, (row) => row.host_id === ids.at(-1)),
    });
const stores = [];
// The page says what else one needs that keeps boundaries.
const myInventory = () => stores[stores.push({ ...memoryInventory(), keepsBoundaries: false }) - 1];
const added = async (of, id, row) => (await stores.at(-1)[of](id, row)).id;
const addNote = (_, id) => added('addNote', id, { ntype: 'note', data: {} });
const addSession = (_, id) => added('addSession', id, { stype: 'shell', opened_at: new Date() });
const addVuln = (_, id) => added('addVuln', id, { name: 'weak' });
const emptyTables = () => {};
`;
    for (const [name, presumed] of [
        ['token-auth/my-api-keys.test.js', keys],
        ['rest-api-v2/site-inventory.test.js', inventory],
    ] as const) {
        const output = await resultsOf(t, name, presumed);
        t.match(output, /^# fail 0$/m, name);
        t.match(output, /^# pass [1-9]/m, name);
    }
});
