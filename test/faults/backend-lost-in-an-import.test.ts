import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { server as hapiServer } from '@hapi/hapi';
import pg from 'pg';
import t, { type Test } from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { ImportSummary } from '../../lib/inventory/store.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { dataOf, said, serveIn } from '../support/served.ts';

/** Hosts of a file that are new: several batches, and several slices of each. */
const NEW = 350;

const known = (name: string): HostInput => ({
    address: '192.0.2.7',
    name,
    services: [{ port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null }],
});

const FILE = [known('after'), ...Array.from({ length: NEW }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}` }))]
    .map((host) => `${JSON.stringify(host)}\n`)
    .join('');

/** The end of the backend that is the `times`th to do this. A sequence keeps the count, which no rollback takes back. */
interface End {
    readonly times: number;
    readonly doing: string;
}

const ENDS = {
    'as it is read aside': { times: 2, doing: 'insert on scanwire.import_batches for each statement' },
    'as it is stored': { times: 3, doing: 'insert on scanwire.hosts for each statement' },
    'as it is shown': {
        times: 1,
        doing: 'update on scanwire.workspaces for each row when (new.staged_shown and not old.staged_shown)',
    },
} satisfies Readonly<Record<string, End>>;

const ONCE_SHOWN: End = { times: 1, doing: 'delete on scanwire.staged_hosts for each row' };

/** What an import has come to, in the words of its caller. */
type Outcome = { readonly summary: ImportSummary } | { readonly error: { readonly code: string; readonly message: string } };

type Way = (workspace: string) => Promise<Outcome>;

const database = await migratedDatabase();
const pool = new pg.Pool({ connectionString: database.url });
pool.on('error', () => {});
t.teardown(async () => {
    await pool.end();
    await database.drop();
});
await pool.query(`create sequence done;
    create function end_backend() returns trigger language plpgsql as $$ begin
        if nextval('done') = tg_argv[0]::integer then
            perform pg_terminate_backend(pg_backend_pid()), pg_sleep(60);
        end if;
        return null;
    end $$`);

async function ends({ times, doing }: End): Promise<() => Promise<unknown>> {
    await pool.query(`alter sequence done restart; create trigger ends after ${doing} execute function end_backend(${times})`);
    const [table] = /scanwire\.\w+/.exec(doing) ?? [];
    return () => pool.query(`drop trigger ends on ${table}`);
}

/** All that is shown of a workspace, and what is left of imports anywhere. */
async function seen(workspace: number): Promise<{ readonly shown: string; readonly left: unknown }> {
    const { hosts, workspaceServices } = postgresInventory({ pool });
    const rows: object[] = [];
    for (const list of [hosts.list([workspace]), workspaceServices.list([workspace])]) {
        for await (const batch of list) {
            rows.push(...batch);
        }
    }
    const left = await pool.query(
        `select (select count(*)::integer from scanwire.hosts where workspace_id = $1) as hosts,
        (select count(*)::integer from scanwire.import_batches) as batches,
        (select count(*)::integer from scanwire.staged_hosts) as staged_hosts,
        (select count(*)::integer from scanwire.workspaces where import_id is not null or staged_shown) as imports`,
        [workspace],
    );
    return { shown: JSON.stringify(rows), left: left.rows[0] };
}

const ENDED = 'The database cannot be used now: the server has ended the connection (57P01)';
const NOTHING = { batches: 0, staged_hosts: 0, imports: 0 };

/** By the admin API of a server in this process. */
async function overHttp(t: Test): Promise<Way> {
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    const inventory = postgresInventory({ pool });
    await server.register({ plugin: adminConsole, options: { system: { inventory }, auth: false, authorize: () => true } });
    await server.start();
    t.teardown(() => server.stop());
    return async (workspace) => {
        const url = `${server.info.uri}/admin-console/import?workspace=${encodeURIComponent(workspace)}`;
        const headers = { 'content-type': 'application/octet-stream' };
        const answer = await fetch(url, { method: 'POST', headers, body: FILE });
        const body = (await answer.json()) as Outcome & ImportSummary;
        t.equal(answer.status, 'error' in body ? 503 : 200);
        return 'error' in body ? body : { summary: body };
    };
}

/** By the command, which asks the server of its data folder where one runs. */
function byCommand(t: Test, data: string): Way {
    const file = join(t.testdir(), 'scan.jsonl');
    writeFileSync(file, FILE);
    return async (workspace) => {
        const args = ['import', file, '--workspace', workspace, '--data', data, '--json'];
        const { code, stdout, stderr } = await said(args, { env: { DATABASE_URL: database.url } });
        t.equal(code, stdout === '' ? 1 : 0);
        return stdout === '' ? JSON.parse(stderr) : { summary: JSON.parse(stdout) };
    };
}

const WAYS: Readonly<Record<string, (t: Test) => Promise<Way>>> = {
    'over HTTP': overHttp,
    'by the command': async (t) => byCommand(t, dataOf(t)),
    async 'by the command, through a server'(t) {
        const data = dataOf(t);
        await serveIn(t, { DATABASE_URL: database.url }, data);
        return byCommand(t, data);
    },
};

for (const [name, make] of Object.entries(WAYS)) {
    t.test(`an import ${name} whose backend is ended`, async (t) => {
        const imported = await make(t);
        const store = postgresInventory({ pool });
        async function* before(): AsyncGenerator<HostInput> {
            yield known('before');
        }

        for (const [when, end] of Object.entries(ENDS)) {
            t.test(`${when} shows nothing, says so, and can be done again at once`, async (t) => {
                const { workspace } = await store.importHosts(`${name} ${when}`, before());
                const { shown } = await seen(workspace.id);
                t.teardown(await ends(end));
                t.match(await imported(workspace.name), { error: { code: 'UNAVAILABLE', message: ENDED } });
                t.strictSame(await seen(workspace.id), { shown, left: { hosts: 1, ...NOTHING } });
                t.match(await imported(workspace.name), { summary: { hosts: { new: NEW, changed: 1 }, services: { unchanged: 1 } } });
                t.match((await seen(workspace.id)).left, { hosts: NEW + 1, ...NOTHING });
            });
        }

        t.test('once it is shown has succeeded, and the next one finishes it', async (t) => {
            const { workspace } = await store.importHosts(`${name} once shown`, before());
            t.teardown(await ends(ONCE_SHOWN));
            t.match(await imported(workspace.name), { summary: { hosts: { new: NEW, changed: 1 } } });
            const { shown, left } = await seen(workspace.id);
            t.match(left, { hosts: NEW + 1, staged_hosts: 1, imports: 1 });
            t.match(await imported(workspace.name), { summary: { hosts: { new: 0, changed: 0, unchanged: NEW + 1 } } });
            t.strictSame(await seen(workspace.id), { shown, left: { hosts: NEW + 1, ...NOTHING } });
        });
    });
}
