import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import t from 'tap';
import { migrate, type PoolLike } from '../../adapters/postgres/index.ts';
import { fetchedNode, NODES, runPageOn, writeForms } from '../nodes/nodes.ts';
import { installedAbove, readmeSays } from '../peers/peers.ts';
import { DELIVERED, endOf, pastedPage, pastedProject, printedBy } from '../support/embedding-page.ts';
import { packed, run } from '../support/packed.ts';
import { testDatabase } from '../support/test-database.ts';

// Installing takes its time on a busy machine.
t.setTimeout(300_000);

const { folder, remove } = await packed();
t.teardown(remove);
const beganAt = performance.now();
const project = await pastedProject(folder);

t.strictSame([...pastedPage().keys()], ['server.js', 'migrations.js', 'finding.test.js']);

t.test('brings no more than a host can bear', (t) => {
    const { packages, bytes, optionalBytes } = installedAbove(project);
    t.ok(packages.includes(join('node_modules', '@electric-sql', 'pglite')), 'what is optional is there');
    t.ok(bytes <= 60_000_000, `${bytes} bytes above hapi and joi, at most 60 MB`);
    t.ok(readmeSays(/brings all of it, (\d+) MB in all/, bytes / 1e6), `the README on ${bytes} bytes`);
    t.ok(readmeSays(/beside theirs instead of (\d+)\./, packages.length), `the README on ${packages.length} packages`);
    t.ok(readmeSays(/leaves out (\d+) MB/, optionalBytes / 1e6), `the README on ${optionalBytes} bytes that are optional`);
    t.end();
});

t.test('leads from an existing server to a verified delivery', async (t) => {
    const use = async ([curl = '']: readonly string[]): Promise<void> => {
        const [, token = '', url = ''] = /^curl -H 'token: (\S+)' (\S+)$/.exec(curl) ?? [];
        const answer = await fetch(url, { headers: { token, connection: 'close' } });
        const seconds = (performance.now() - beganAt) / 1000;
        t.ok(seconds <= 90, `${seconds.toFixed(1)} s from the tarball to the first 200`);
        t.match([answer.status, await answer.json()], [200, [{ address: '192.0.2.10', name: 'web-1', service_count: 1 }]]);
        const headers = { 'content-type': 'application/json', connection: 'close' };
        for (const [body, message] of [
            ['{"title":""}', /title is not allowed to be empty/],
            ['{}', /title is required/],
            [undefined, /title is required/],
        ] as const) {
            const refused = await fetch(new URL('/findings', url), { method: 'POST', headers, ...(body !== undefined && { body }) });
            t.match([refused.status, await refused.json()], [400, { message, code: 'INVALID_INPUT', field: 'title' }]);
        }
    };
    t.strictSame((await printedBy(project, 'server.js', { use })).slice(1), DELIVERED);
});

t.test('type-checks in TypeScript', (t) => t.resolves(writeForms(project)));

// Those between them: `npm run nodes`.
for (const version of [NODES[0], NODES.at(-1)] as string[]) {
    t.test(`does so as a module, in CommonJS and in TypeScript, on Node.js ${version}`, async (t) => {
        await t.resolves(runPageOn(await fetchedNode(version, folder), project));
    });
}

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
    const source = `${pastedPage().get('server.js')}\nprocess.kill(process.pid, 'SIGTERM');\n`;
    writeFileSync(join(project, 'ending.js'), source);
    t.strictSame(await endOf(project, 'ending.js'), [0, null]);
});
