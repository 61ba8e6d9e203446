import { type ChildProcess, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { buffer } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import { verify } from 'scanwire/verify';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { run } from '../support/packed.ts';
import { pastedPages } from '../support/pages.ts';
import { testDatabase } from '../support/test-database.ts';

/* The pages of servers that are not hapi, each pasted into a project of its own, started, used and stopped. */

interface Page {
    readonly language: 'js' | 'ts';
    readonly program: string;
    /** How the program ends at SIGTERM: exit code and signal. */
    readonly end: readonly unknown[];
}

const PAGES: Readonly<Record<string, Page>> = {
    express: { language: 'js', program: 'server.js', end: [0, null] },
    fastify: { language: 'js', program: 'server.js', end: [0, null] },
    'node-http': { language: 'js', program: 'server.js', end: [0, null] },
    // Nest ends by the signal, as if nobody had listened to it.
    nest: { language: 'ts', program: 'main.js', end: [null, 'SIGTERM'] },
};

/** The receiver of the test is not public. */
const OPENED = ['await startScanwire({ pool, ', "await startScanwire({ pool, egress: { allow: ['127.0.0.1'] }, "] as const;

/** What `nest new` has in its `tsconfig.json`, as far as it makes a difference. */
const NEST = ['--module', 'nodenext', '--target', 'es2023', '--experimentalDecorators', '--emitDecoratorMetadata', '--strictNullChecks'];

function filesOf(page: string): ReadonlyMap<string, string> {
    const all = [...pastedPages(PAGES[page]?.language)].filter(([name]) => name.startsWith(`${page}/`));
    return new Map(all.map(([name, source]) => [name.slice(page.length + 1), source]));
}

/** A project with what the page says, in which `scanwire` is the built package. */
async function pasted(t: Test, page: string): Promise<string> {
    const { language = 'js' } = PAGES[page] ?? {};
    const folder = resolve('build/other-servers', page);
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(join(folder, 'node_modules'), { recursive: true });
    symlinkSync(resolve('.'), join(folder, 'node_modules', 'scanwire'));
    writeFileSync(join(folder, 'package.json'), JSON.stringify({ private: true, ...(language === 'js' && { type: 'module' }) }));
    const files = filesOf(page);
    t.equal([...files.values()].filter((source) => source.includes(OPENED[0])).length, 1);
    for (const [name, source] of files) {
        writeFileSync(join(folder, name), source.replace(...OPENED));
    }

    if (language === 'ts') {
        const options = ['--ignoreConfig', '--skipLibCheck', '--strict', '--types', 'node', ...NEST];
        const compiled = run(resolve('node_modules/.bin/tsc'), [...options, ...files.keys()], { cwd: folder });
        await t.resolves(compiled.catch(({ stdout }: { stdout: string }) => Promise.reject(new Error(stdout))));
    }
    return folder;
}

async function started(t: Test, folder: string, { program }: Page, env: NodeJS.ProcessEnv) {
    const child: ChildProcess = spawn(process.execPath, [program], {
        cwd: folder,
        env: { ...process.env, ...env, PORT: '0', NODE_OPTIONS: '' },
        stdio: ['ignore', 'pipe', 'inherit'],
    });
    t.after(() => child.kill('SIGKILL'));
    for await (const line of createInterface(child.stdout as NodeJS.ReadableStream)) {
        const [, token, url] = /^curl -H 'token: (\S+)' (http:\S+)$/.exec(line) ?? [];
        if (token !== undefined && url !== undefined) {
            return { child, token, url };
        }
    }
    throw new Error(`${folder} says nothing to try`);
}

/** A receiver as the page wants it: what it has verified, by the secrets that it is told. */
async function receiver(t: Test) {
    const seen: unknown[] = [];
    const secrets: string[] = [];
    const server = createServer(async (request, response) => {
        const { kind } = verify(await buffer(request), request.headers, { secrets });
        seen.push(kind);
        response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, seen, secrets };
}

t.setTimeout(240_000);

for (const [name, page] of Object.entries(PAGES)) {
    t.test(`docs/${name}.md leads from the install to a verified delivery and to SIGTERM`, async (t) => {
        const { url: DATABASE_URL, drop } = await testDatabase();
        const pool = new pg.Pool({ connectionString: DATABASE_URL });
        t.after(async () => {
            await pool.end();
            await drop();
        });
        const folder = await pasted(t, name);
        const sealingKey = randomBytes(32);
        const { child, token, url } = await started(t, folder, page, { DATABASE_URL, SEALING_KEY: sealingKey.toString('base64') });
        const read = async (headers: Record<string, string>) => {
            const answer = await fetch(url, { headers: { connection: 'close', ...headers } });
            return { status: answer.status, body: (await answer.json()) as unknown };
        };
        t.match(await read({ token }), { status: 200, body: [{ name: 'default' }] });
        t.match(await read({}), { status: 403 });

        const ops = await receiver(t);
        const { startScanwire } = await import(pathToFileURL(join(folder, 'scanwire.js')).href);
        const { firstExporter } = await import(pathToFileURL(join(folder, 'first-exporter.js')).href);
        const beside = await startScanwire({ pool, sealingKey, egress: { allow: ['127.0.0.1'] } });
        const outcome = await firstExporter(beside, ops.url, async (secret: string) => void ops.secrets.push(secret));
        t.equal(outcome, 'delivered');
        await beside.stop();

        const post = async (body: object) => {
            const answer = await fetch(new URL('/findings', url), {
                method: 'POST',
                headers: { 'content-type': 'application/json', connection: 'close' },
                body: JSON.stringify(body),
            });
            return { status: answer.status, body: (await answer.json()) as { id: string } };
        };
        t.match(await post({}), { status: 400, body: { code: 'INVALID_INPUT', field: 'title' } });
        const made = await post({ title: 'Weak cipher' });
        t.equal(made.status, 201);
        t.match((await pool.query('select id, title from finding')).rows, [{ id: made.body.id, title: 'Weak cipher' }]);
        await until(() => ops.seen.includes('idr_investigation_created'));

        const exited = once(child, 'exit');
        child.kill('SIGTERM');
        t.strictSame(await exited, page.end);
        t.strictSame((await pool.query('select distinct state from scanwire.deliveries')).rows, [{ state: 'delivered' }]);
    });
}

t.test('what the pages have in common is that of the examples', (t) => {
    for (const page of Object.keys(PAGES).filter((name) => PAGES[name]?.language === 'js')) {
        for (const file of ['scanwire.js', 'findings.js']) {
            const block = filesOf(page).get(file)?.trimEnd();
            t.equal(block, `// ${file}\n${readFileSync(join('examples/other-servers', file), 'utf8').trimEnd()}`, `${page}: ${file}`);
        }
    }
    t.end();
});
