import { execFileSync } from 'node:child_process';
import { pathToFileURL } from 'node:url';
import t from 'tap';

const HEAVY = ['bullmq', 'ioredis', 'pg', '@electric-sql/pglite', 'undici', 'saxes'];

/** The scripts that a process which imports these modules has parsed, as its own debugger sees them. */
function loadedScripts(...modules: readonly string[]): readonly string[] {
    const program = `
        import { Session } from 'node:inspector';
        const urls = [];
        const session = new Session();
        session.connect();
        session.on('Debugger.scriptParsed', ({ params }) => urls.push(params.url));
        session.post('Debugger.enable');
        for (const name of ${JSON.stringify(modules)}) {
            await import(name);
        }

        process.stdout.write(JSON.stringify(urls));
        process.exit();`;
    return JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })) as string[];
}

/** The packages that these belong to. */
function loadedPackages(...modules: readonly string[]): Set<string> {
    return new Set(loadedScripts(...modules).flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []));
}

t.test('token-auth, rest-api-v2 and admin-console load no queue, no database driver and no HTTP client', (t) => {
    const loaded = loadedPackages('scanwire/token-auth', 'scanwire/rest-api-v2', 'scanwire/admin-console');
    t.ok(loaded.has('joi'), 'what they do load is seen');
    t.same(
        HEAVY.filter((name) => loaded.has(name)),
        [],
    );
    t.end();
});

/** What Joi loads, and what it makes then, for the first schema that has preferences, of whose kind `messages` are: a tenth of the start. */
const PREFERENCES = /\/joi\/lib\/schemas\.js$/;

t.test('a start makes neither the schema of preferences of Joi nor those of records', (t) => {
    const isCostly = (url: string): boolean => PREFERENCES.test(url) || url.endsWith('/records/record-schema.js');
    const own = ['scanwire/token-auth', 'scanwire/rest-api-v2', 'scanwire/license', 'scanwire/memory'];
    t.same(loadedScripts(...own).filter(isCostly), []);
    t.equal(loadedScripts('scanwire/records').filter(isCostly).length, 2, 'it is seen where it is');
    t.end();
});

/** Each costs a search, some reads and a step of linking, however small it is. */
const MOST_FILES = 30;

t.test('a host with the REST API and its keys reads few files of ours', (t) => {
    const own = ['scanwire/token-auth', 'scanwire/rest-api-v2', 'scanwire/keys', 'scanwire/license', 'scanwire/memory'];
    const files = loadedScripts(...own).filter((url) => url.startsWith(pathToFileURL('dist').href));
    t.ok(files.length <= MOST_FILES, `${files.length} files of ours: ${files.join(' ')}`);
    t.ok(files.length > own.length, 'they are seen');
    t.end();
});

t.test('the check sees what is loaded', (t) => {
    const loaded = loadedPackages('scanwire/bullmq', 'pg', 'ioredis', 'undici');
    t.same(
        HEAVY.filter((name) => loaded.has(name)),
        ['bullmq', 'ioredis', 'pg', 'undici'],
    );
    t.end();
});

t.test('the queue on PostgreSQL loads neither ioredis nor pg', (t) => {
    const loaded = loadedPackages('scanwire/bullmq');
    t.same(
        HEAVY.filter((name) => loaded.has(name)),
        ['bullmq'],
    );
    t.end();
});

t.test('a server with an embedded database loads no queue on other servers, and no protocol before somebody speaks it', (t) => {
    const loaded = loadedPackages('./dist/cli/serve-process.js');
    t.ok(loaded.has('undici'), 'what it does load is seen');
    t.same(
        ['bullmq', 'ioredis', 'pg', '@modelcontextprotocol/sdk', 'zod'].filter((name) => loaded.has(name)),
        [],
    );
    t.end();
});
