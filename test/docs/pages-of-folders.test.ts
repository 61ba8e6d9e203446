import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';

/** The page of every plugin and adapter, and what it says that only the page of this one does. */
const PAGES: Readonly<Record<string, readonly [page: string, entry: string]>> = {
    'adapters/bullmq': ['queues', 'scanwire/bullmq'],
    'adapters/memory': ['memory', 'scanwire/memory'],
    'adapters/pglite': ['embedded-database', 'scanwire/pglite'],
    'adapters/postgres': ['postgres', 'scanwire/postgres'],
    'adapters/scan-database': ['scan-database', 'scanwire/scan-database'],
    'plugins/admin-console': ['admin-console', 'scanwire/admin-console'],
    'plugins/https-record-schema': ['https-record-schema', 'scanwire/https-record-schema'],
    'plugins/mcp': ['mcp', 'scanwire/mcp'],
    'plugins/metasploit-data': ['metasploit-data', 'scanwire/metasploit-data'],
    'plugins/metrics': ['metrics', 'scanwire/metrics'],
    'plugins/rest-api-v2': ['rest-api-v2', 'scanwire/rest-api-v2'],
    'plugins/token-auth': ['token-auth', 'scanwire/token-auth'],
    'plugins/webhook-auth': ['receivers', 'scanwire/webhook-auth'],
    'plugins/webhook-exporter': ['webhook-exporter', 'scanwire/webhook-exporter'],
};

/** The laws that adapters keep, of which the pages of stores tell. */
const NO_ADAPTER = 'adapters/contract';

t.test('every plugin and adapter has its page, which shows how it is imported', (t) => {
    const folders = ['adapters', 'plugins'].flatMap((root) => readdirSync(root).map((name) => `${root}/${name}`));
    const shipped = folders.filter((folder) => folder !== NO_ADAPTER && existsSync(join(folder, 'index.ts')));
    t.strictSame(Object.keys(PAGES), shipped.toSorted());
    for (const [folder, [page, entry]] of Object.entries(PAGES)) {
        t.match(readFileSync(`docs/${page}.md`, 'utf8'), `from '${entry}'`, folder);
    }
    t.end();
});

t.test('each page is that of one, and the readme leads to it', (t) => {
    const pages = Object.values(PAGES).map(([page]) => page);
    t.equal(new Set(pages).size, pages.length);
    const readme = readFileSync('README.md', 'utf8');
    for (const page of pages) {
        t.match(readme, `(docs/${page}.md`);
    }
    t.end();
});
