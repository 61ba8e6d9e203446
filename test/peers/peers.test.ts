import { readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { TRIED, type Tried } from '../../lib/optional-packages.ts';
import { packed } from '../support/packed.ts';
import {
    ENDS,
    filesIn,
    hostWith,
    installedAbove,
    NEWEST,
    OLDEST,
    type Others,
    OWN,
    type Peers,
    projectOf,
    readmeSays,
    runIn,
} from './peers.ts';

// Installing takes its time on a busy machine.
t.setTimeout(300_000);
const { folder, remove } = await packed();
t.teardown(remove);

/** Whether it is the version that was asked for; of the newest, one that is no older than what this project has. */
function isAsked(found: string, asked: string, name: string): boolean {
    const { version } = JSON.parse(readFileSync(join('node_modules', name, 'package.json'), 'utf8')) as { readonly version: string };
    return asked === 'latest' ? found.localeCompare(version, 'en', { numeric: true }) >= 0 : found === asked;
}

/** What needs a package: what it is called in the sentence that says so, and which package. */
const NEEDS: Readonly<Record<string, readonly [use: string, name: string]>> = {
    mcp: ['The plugin mcp', '@modelcontextprotocol/sdk'],
    metrics: ['Metrics', 'prom-client'],
    tracing: ['Tracing', '@opentelemetry/api'],
    screens: ['admin-console options: screens', '@picocss/pico'],
    rateLimit: ['rateLimit of rest-api-v2', 'rate-limiter-flexible'],
    page: ['rest-api-v2 options: openapi.page', 'swagger-ui-dist'],
};

/** What is to be said of the package of something. */
function saidOf(others: Others, use: string, name: string): string | null {
    const { from, to } = TRIED.get(name) as Tried;
    const [line, version] = [`npm install ${name}@${to}`, others[name]];
    if (version === undefined) {
        return `${use} needs the package ${name}: ${line}`;
    }
    const isOlder = !version.startsWith('^') && version.localeCompare(from, 'en', { numeric: true }) < 0;
    return isOlder ? `${use} needs the package ${name} from ${from} on, and ${version} is installed: ${line}` : null;
}

const NAMES: ReadonlyMap<Others, string> = new Map([
    [OLDEST, 'the oldest others that work'],
    [OWN, 'others of its own'],
    [NEWEST, 'the newest others'],
]);

for (const peers of ENDS) {
    const others = NAMES.get(peers.others) ?? 'no others';
    t.test(`fits a host with hapi ${peers.hapi}, joi ${peers.joi}, ${others}${peers.types ? ', its types included' : ''}`, async (t) => {
        const found = await hostWith(peers, folder);
        t.match(found, { status: 200, row: { id: 1, at: 'x' }, deliveries: [], refused: /^Body of scan_finished: / });
        const lacks = Object.entries(NEEDS).map(([part, need]) => [part, saidOf(peers.others, ...need)] as const);
        t.strictSame(found.lacks, Object.fromEntries(lacks));
        const statuses = lacks.filter(([part]) => part !== 'tracing').map(([part, said]) => [part, said === null ? 200 : 404]);
        t.strictSame(found.statuses, { 'metasploit-data': 200, 'admin-console': 200, ...Object.fromEntries(statuses) });
        t.ok(isAsked(found.hapi, peers.hapi, '@hapi/hapi'), `hapi ${found.hapi}`);
        t.ok(isAsked(found.joi, peers.joi, 'joi'), `joi ${found.joi}`);
    });
}

t.test('names the package that --omit=optional has left out, and the line that installs it', async (t) => {
    const attempts = {
        pglite: ['@electric-sql/pglite', `const { openMemoryDatabase } = await import('scanwire/pglite'); await openMemoryDatabase()`],
        redis: [
            'ioredis',
            `const { redisQueue } = await import('scanwire/bullmq'); await redisQueue({ url: 'redis://127.0.0.1:1' }).ready()`,
        ],
        certificate: [
            'selfsigned',
            `const { tlsCertificate } = await import('./node_modules/scanwire/dist/cli/tls-certificate.js');
             const folder = { tlsKey: 'no.key', tlsCertificate: 'no.pem' };
             await tlsCertificate({ folder, host: '127.0.0.1', clock: () => new Date() })`,
        ],
    };
    for (const [name, source = ''] of Object.values(attempts)) {
        const said = await runIn(
            ENDS.at(-1) as Peers,
            folder,
            `try { ${source} } catch (error) { console.log(error.code, error.message) }`,
        );
        t.match(said, new RegExp(`^MISCONFIGURED .* needs the package ${name}: npm install ${name}\n$`));
    }
});

t.test('brings few packages with --omit=optional', (t) => {
    const { packages, bytes } = installedAbove(projectOf(ENDS.at(-1) as Peers, folder));
    t.ok(packages.includes(join('node_modules', 'bullmq')) && packages.includes(join('node_modules', 'scanwire')), 'those that count');
    t.notOk(packages.includes(join('node_modules', '@hapi', 'hoek')), 'not those of hapi');
    t.ok(packages.length <= 40, `${packages.length} packages, at most 40`);
    t.ok(bytes <= 28_000_000, `${bytes} bytes, at most 28 MB`);
    t.ok(readmeSays(/brings (\d+) packages beside theirs/, packages.length), `the README on ${packages.length} packages`);
    t.end();
});

t.test('is packed with its changelog and policies, without what builds it', async (t) => {
    const files = await filesIn(folder);
    for (const file of [
        'CHANGELOG.md',
        'CONTRIBUTING.md',
        'SECURITY.md',
        'UPGRADING.md',
        'LICENSE',
        'dist/adapters/pglite/template.tar.br',
    ]) {
        t.ok(files.includes(file), file);
    }
    t.strictSame(
        files.filter((file) => /tsbuildinfo|\/make\//.test(file)),
        [],
    );
    t.ok(statSync(join(folder, 'scanwire.tgz')).size <= 2_500_000, 'at most 2.5 MB');
});
