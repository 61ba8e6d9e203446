import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import pg from 'pg';
import t, { type Test } from 'tap';
import { migrate, type PoolLike } from '../../adapters/postgres/index.ts';
import { installedAbove } from '../peers/peers.ts';
import { packed, run } from '../support/packed.ts';
import { testDatabase } from '../support/test-database.ts';

// Installing takes its time on a busy machine.
t.setTimeout(300_000);

/** The blocks of the page, pasted one below the other into the files that their first lines name. */
function pasted(): ReadonlyMap<string, string> {
    const files = new Map<string, string>();
    let file = '';
    for (const [, block = ''] of readFileSync('docs/embedding.md', 'utf8').matchAll(/^```js\n(.*?)^```$/gms)) {
        file = /^\/\/ (\S+\.js)$/m.exec(block)?.[1] ?? file;
        files.set(file, `${files.get(file) ?? ''}${block}\n`);
    }
    return files;
}

const { folder, remove } = await packed();
t.teardown(remove);
const project = join(folder, 'existing');
mkdirSync(project);
writeFileSync(
    join(project, 'package.json'),
    JSON.stringify({ private: true, type: 'module', dependencies: { '@hapi/hapi': '^21.0.0', pg: '^8.0.0' } }),
);
const files = pasted();
for (const [file, source] of files) {
    writeFileSync(join(project, file), source);
}
const beganAt = performance.now();
await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', join('..', 'scanwire.tgz')], { cwd: project });

t.strictSame([...files.keys()], ['server.js', 'migrations.js', 'finding.test.js']);

/** The same as a CommonJS module, as a host has it whose package says nothing of modules. */
function asCommonJs(source: string): string {
    const required = source.replaceAll(
        /^import (.+) from ('.+');$/gm,
        (_, names: string, module: string) => `const ${names.replaceAll(' as ', ': ')} = require(${module});`,
    );
    return `'use strict';\n(async () => {\n${required}})();\n`;
}

/** What a program of the page prints up to its first delivery. */
async function printedBy(t: Test, program: string): Promise<readonly string[]> {
    const { url: DATABASE_URL, drop } = await testDatabase();
    t.after(drop);
    const env = { ...process.env, DATABASE_URL, SEALING_KEY: randomBytes(32).toString('base64'), PORT: '0', NODE_OPTIONS: '' };
    const server = spawn(process.execPath, [program], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] });
    t.after(() => server.kill('SIGKILL'));
    const lines: string[] = [];
    for await (const line of createInterface(server.stdout)) {
        lines.push(line);
        if (line.startsWith('idr_investigation_created')) {
            break;
        }
    }
    return lines;
}

const DELIVERED = ['test: verified', 'idr_investigation_created: verified'];

t.test('brings no more than a host can bear', (t) => {
    const { packages, bytes } = installedAbove(project);
    t.ok(packages.includes(join('node_modules', '@electric-sql', 'pglite')), 'what is optional is there');
    t.ok(bytes <= 60_000_000, `${bytes} bytes above hapi and joi, at most 60 MB`);
    t.end();
});

t.test('leads from an existing server to a verified delivery', async (t) => {
    const [curl = '', ...said] = await printedBy(t, 'server.js');
    t.strictSame(said, DELIVERED);
    const [, token = '', url = ''] = /^curl -H 'token: (\S+)' (\S+)$/.exec(curl) ?? [];
    const answer = await fetch(url, { headers: { token, connection: 'close' } });
    const seconds = (performance.now() - beganAt) / 1000;
    t.ok(seconds <= 90, `${seconds.toFixed(1)} s from the tarball to the first 200`);
    t.match([answer.status, await answer.json()], [200, [{ address: '192.0.2.10', name: 'web-1', service_count: 1 }]]);
    const refused = await fetch(new URL('/findings', url), {
        method: 'POST',
        headers: { 'content-type': 'application/json', connection: 'close' },
        body: '{"title":""}',
    });
    const answered = { message: /title is not allowed to be empty/, code: 'INVALID_INPUT', field: 'title' };
    t.match([refused.status, await refused.json()], [400, answered]);
});

t.test('does so in CommonJS', async (t) => {
    writeFileSync(join(project, 'server.cjs'), asCommonJs(files.get('server.js') ?? ''));
    t.strictSame((await printedBy(t, 'server.cjs')).slice(1), DELIVERED);
});

/** What somebody who writes TypeScript adds: the types of what has none in JavaScript. */
const ANNOTATIONS: readonly (readonly [string, string])[] = [
    ['function* found()', "function* found(): AsyncGenerator<import('scanwire/inventory').HostInput>"],
    ['addFinding(title)', 'addFinding(title: string)'],
    ['addFinding(payload.title)', 'addFinding((payload as { title: string }).title)'],
    ['let secret;', 'let secret: string;'],
    ['console.log(error.message)', 'console.log((error as Error).message)'],
    ['receiver.address().port', "(receiver.address() as import('node:net').AddressInfo).port"],
];

t.test('type-checks in TypeScript', async (t) => {
    const own = resolve('node_modules');
    symlinkSync(join(own, '@types'), join(project, 'node_modules', '@types'));
    const annotated = ANNOTATIONS.reduce((source, [plain, typed]) => {
        t.ok(source.includes(plain), plain);
        return source.replaceAll(plain, typed);
    }, files.get('server.js') ?? '');
    for (const [file, source] of [...files, ['server.js', annotated] as const]) {
        writeFileSync(join(project, file.replace('.js', '.ts')), `export {};\n${source}`);
    }
    const sources = [...files.keys()].map((file) => file.replace('.js', '.ts'));
    const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', '--types', 'node'];
    const checked = run(join(own, '.bin', 'tsc'), [...options, ...sources], { cwd: project });
    await t.resolves(checked.catch(({ stdout }) => Promise.reject(new Error(stdout))));
});

t.test('brings the schema by files, as migrate does', async (t) => {
    await run(process.execPath, ['migrations.js'], { cwd: project });
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    t.after(async () => {
        await pool.end();
        await drop();
    });
    for (const name of readdirSync(join(project, 'migrations')).sort()) {
        const sql = readFileSync(join(project, 'migrations', name), 'utf8');
        for (const statement of sql.startsWith('-- Must not run in a transaction') ? sql.split(/(?<=;)\n/) : [`begin; ${sql}; commit`]) {
            await pool.query(statement);
        }
    }
    t.strictSame(await migrate(pool as PoolLike), [], 'nothing is left to do');
});

t.test('runs the test of the page', async (t) => {
    const { stdout } = await run(process.execPath, ['--test', '--test-reporter=tap', 'finding.test.js'], { cwd: project });
    t.match(stdout, /^# pass 1$/m);
    t.match(stdout, /^# fail 0$/m);
});

t.test('ends at SIGTERM when everything on the page was pasted', async (t) => {
    const { url: DATABASE_URL, drop } = await testDatabase();
    t.after(drop);
    // The receiver of the page is for trying; it lives as long as its process.
    const source = `${files.get('server.js')}\nreceiver.close();\nprocess.kill(process.pid, 'SIGTERM');\n`;
    writeFileSync(join(project, 'ending.js'), source);
    const env = { ...process.env, DATABASE_URL, SEALING_KEY: randomBytes(32).toString('base64'), PORT: '0', NODE_OPTIONS: '' };
    const server = spawn(process.execPath, ['ending.js'], { cwd: project, env, stdio: ['ignore', 'ignore', 'inherit'] });
    t.after(() => server.kill('SIGKILL'));
    t.strictSame(await once(server, 'exit'), [0, null]);
});
