import { mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import t from 'tap';
import { run } from '../support/packed.ts';
import { pastedPages } from '../support/pages.ts';

/*
 * The blocks of every page, pasted one after the other, as a checker of types sees them: that they parse, that what they import is exported,
 * that each name is there and once, and each option and function is called as it is. What runs them besides: the other files here, and for
 * receivers and transactions of others `test/interop/`.
 */

/** Where `import 'scanwire/…'` finds the built package, as it does for whoever installed it. */
const FOLDER = 'build/pages';

const HOST = ['pool', 'server'];
const SENDER = ['guard', 'keyRing', 'queue', 'sender', 'stores'];

/** What a page, or a file of it, presumes of the host that it is pasted into; what it would have to say itself is not among it. */
const PRESUMED: Readonly<Record<string, readonly string[]>> = {
    'README/page.js': ['pool'],
    'admin-console/page.js': HOST,
    'errors/page.js': ['exporters', 'server'],
    'exposing/page.js': ['server'],
    'filters/page.js': ['exporters'],
    'https-record-schema/page.js': ['server'],
    'https-record-schema/storing.js': HOST,
    'metrics/page.js': ['server'],
    'metrics/sender.js': SENDER,
    'observing/page.js': ['alertSomebody', 'count', 'hapiPino', 'server', 'webhookExporter', ...SENDER],
    'queues/page.js': ['pool'],
    'receivers/any-form.js': ['body', 'request'],
    'receivers/once.js': ['body', 'request'],
    'receivers/hapi.js': ['putAside', 'server'],
    'receivers/shared.js': ['body', 'redis', 'request'],
    'receivers/standard.js': ['body', 'headers', 'secret'],
    'rest-api-v2/page.js': ['pool'],
    'rest-api-v2/site-inventory.test.js': [
        'addNote',
        'addSession',
        'addVuln',
        'emptyTables',
        'fillTables',
        'myInventory',
        'pool',
        'siteInventory',
    ],
    'rest-api-v2/campaigns.js': ['pool'],
    'running/page.js': ['server'],
    'scan-database/page.js': ['license', 'server'],
    'token-auth/my-api-keys.test.js': ['emptyTable', 'myApiKeys', 'pool'],
    'webhook-exporter/server.js': ['drizzle', 'findings', 'knex', 'kysely', 'postgres', ...HOST],
    'webhook-exporter/worker.js': ['onOutdated', 'pool'],
};

/** Packages of the pages that no test needs. */
const NOT_INSTALLED = /Cannot find module '@bull-board\//;

/** What only a page in TypeScript would say: types of texts, what is not null, which of several. */
const UNTYPED = /error TS(?:18046|18047|18048|2322|2339|2345|2531|2532|2769):/;

/** What a checker of types says of them. */
async function faultsOf(files: ReadonlyMap<string, string>): Promise<readonly string[]> {
    rmSync(FOLDER, { recursive: true, force: true });
    for (const [name, source] of files) {
        const path = join(FOLDER, name);
        mkdirSync(dirname(path), { recursive: true });
        const presumed = (PRESUMED[name] ?? []).map((one) => `const ${one} = /** @type {any} */ (globalThis).${one};\n`);
        writeFileSync(path, `export {};\n${presumed.join('')}${source}`);
    }
    const options = ['--noEmit', '--allowJs', '--checkJs', '--strict', '--noImplicitAny', 'false', '--skipLibCheck', '--types', 'node'];
    const paths = Array.from(files.keys(), (name) => join(FOLDER, name));
    const modern = ['--ignoreConfig', '--module', 'nodenext', '--target', 'es2023'];
    const { stdout } = await run('node_modules/.bin/tsc', [...modern, ...options, ...paths]).catch((error: { stdout: string }) => error);
    return stdout.split('\n').filter((line) => line.startsWith(FOLDER) && !UNTYPED.test(line) && !NOT_INSTALLED.test(line));
}

t.test('pastes every block after the one before it', async (t) => {
    const files = pastedPages();
    t.ok(files.size > 30);
    t.strictSame(
        Object.keys(PRESUMED).filter((name) => !files.has(name)),
        [],
    );
    t.strictSame(await faultsOf(files), []);
});

t.test('sees a block that does not parse, a name that is nowhere, one that is twice and an export that is none', async (t) => {
    // A file that does not parse keeps the checker from looking further.
    const broken = ['const store = { list: … };'];
    const others = ['console.log(nowhere);', 'const one = 1;\nconst one = 2;', `import { none } from 'scanwire/keys';`];
    for (const sources of [broken, others]) {
        const files = new Map(sources.map((source, index) => [`fault-${index}/page.js`, source]));
        const seen = await faultsOf(files);
        for (const [name, source] of files) {
            t.ok(
                seen.some((fault) => fault.includes(name)),
                source,
            );
        }
    }
});
