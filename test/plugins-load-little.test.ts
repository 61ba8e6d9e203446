import { execFileSync } from 'node:child_process';
import t from 'tap';

const HEAVY = ['bullmq', 'ioredis', 'pg', '@electric-sql/pglite', 'undici', 'sax'];

/** The packages of which a process that imports these modules has parsed a script, as its own debugger sees them. */
function loadedPackages(...modules: readonly string[]): Set<string> {
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
    const urls = JSON.parse(execFileSync(process.execPath, ['--input-type=module', '--eval', program], { encoding: 'utf8' })) as string[];
    return new Set(urls.flatMap((url) => /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)/.exec(url)?.[1] ?? []));
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
    const loaded = loadedPackages('./dist/cli/commands/serve.js');
    t.ok(loaded.has('undici'), 'what it does load is seen');
    t.same(
        ['bullmq', 'ioredis', 'pg', '@modelcontextprotocol/sdk', 'zod'].filter((name) => loaded.has(name)),
        [],
    );
    t.end();
});
