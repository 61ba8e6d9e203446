import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import { gunzipSync } from 'node:zlib';
import pg from 'pg';
import t, { type Test } from 'tap';
import { underWay, until } from '../../adapters/contract/assertions.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { type Served, served } from '../plugins/rest-api-v2/served.ts';
import { migratedDatabase } from '../support/migrated-database.ts';
import { type TcpProxy, tcpProxy } from '../support/tcp-proxy.ts';

/** Hosts of the batches that are read as rows are; what comes behind them is copied out. */
const SHORT = 1_250;
const HOSTS = 3_500;
/** Those behind have so long an `info` that a batch is more than sockets hold: the server is in the midst of it when some has come. */
const [INFO, SOME] = [14_000, 2 ** 20];
/** What a copy in binary begins with. */
const COPY = 'PGCOPY';
/** As few as a long listing uses: one that is lost for good is missed. */
const CONNECTIONS = 2;
const NAME = 'index';

const hostsOf = (table: string): string => `insert into ${table} (workspace_id, address, info)
    select $1, '10.0.0.0'::inet + n, case when n > ${SHORT} then repeat('x', ${INFO}) end from generate_series(1, ${HOSTS}) n`;

/** Many hosts in one workspace. */
interface Filled {
    readonly url: string;
    readonly table: string;
    readonly workspace: number;
    open(connectionString: string): Promise<{ readonly store: InventoryStore; close(): Promise<void> }>;
}

const DATABASES: Readonly<Record<string, (t: Test) => Promise<Filled>>> = {
    async 'own tables'(t) {
        const { url, drop } = await migratedDatabase();
        t.teardown(drop);
        const pool = new pg.Pool({ connectionString: url });
        const { id: workspace } = await postgresInventory({ pool }).ensureWorkspace('many');
        await pool.query(hostsOf('scanwire.hosts'), [workspace]);
        await pool.end();
        return {
            ...{ url, table: 'scanwire.hosts', workspace },
            async open(connectionString) {
                const pool = new pg.Pool({ connectionString, max: CONNECTIONS });
                pool.on('error', () => {});
                return { store: postgresInventory({ pool }), close: () => pool.end() };
            },
        };
    },
    async 'a scan database'(t) {
        const { url, pool, stop } = await scanDatabase(2);
        t.teardown(stop);
        const workspace = 3;
        await pool.query(`insert into workspaces (id, name) values (${workspace}, 'many'); select setval('hosts_id_seq', 1000)`);
        await pool.query(hostsOf('hosts'), [workspace]);
        return {
            ...{ url, table: 'hosts', workspace },
            async open(connectionString) {
                const { inventory, close } = await openScanDatabase({ connectionString, connections: CONNECTIONS });
                return { store: inventory, close };
            },
        };
    },
};

/** A server whose way to the database goes through a proxy, and somebody who looks at that database from beside. */
interface Indexed extends Filled {
    readonly running: Served;
    readonly proxy: TcpProxy;
    readonly beside: pg.Client;
}

async function indexed(t: Test, filled: Filled): Promise<Indexed> {
    const beside = new pg.Client({ connectionString: filled.url });
    await beside.connect();
    const proxied = new URL(filled.url);
    const proxy = await tcpProxy({ host: proxied.hostname, port: Number(proxied.port || 5432) });
    proxied.host = `127.0.0.1:${proxy.port}`;
    proxied.searchParams.set('application_name', NAME);
    const { store, close } = await filled.open(proxied.href);
    const running = await served({ store });
    await running.server.start();
    t.teardown(async () => {
        await running.server.stop({ timeout: 100 });
        await close();
        await beside.end();
        await proxy.close();
    });
    return { ...filled, running, proxy, beside };
}

interface Read {
    readonly status: number | undefined;
    readonly body: Buffer;
    readonly error: Error | null;
}

/** The answer as far as it came, and what ended it. */
async function read({ running, workspace }: Indexed, encoding = 'identity'): Promise<Read> {
    const headers = { ...running.headers, 'accept-encoding': encoding };
    const url = `${running.server.info.uri}/rest_api/v2/workspaces/${workspace}/hosts`;
    const [message] = (await once(http.get(url, { agent: false, headers }), 'response')) as [IncomingMessage];
    const chunks: Buffer[] = [];
    let error: Error | null = null;
    try {
        for await (const chunk of message) {
            chunks.push(chunk);
        }
    } catch (thrown) {
        error = thrown as Error;
    }
    return { status: message.statusCode, body: Buffer.concat(chunks), error };
}

function isBrokenOff(t: Test, { status, body, error }: Read, encoding = 'identity'): void {
    t.equal(status, 200);
    t.match(error, { code: 'ECONNRESET' });
    t.throws(() => JSON.parse(String(encoding === 'gzip' ? gunzipSync(body) : body)));
}

/** Two at once need all connections. */
async function answersWhole(t: Test, index: Indexed): Promise<void> {
    for (const { status, body, error } of await Promise.all([read(index), read(index)])) {
        t.strictSame([status, error], [200, null]);
        t.equal(JSON.parse(String(body)).length, HOSTS);
    }
    const { rows } = await index.beside.query('select distinct state from pg_stat_activity where application_name = $1', [NAME]);
    t.same(rows, [{ state: 'idle' }], 'no connection is at work for nobody');
}

/** Ends the backends of which this holds, and resolves to how many they were when they are gone. */
async function terminate({ beside }: Indexed, where: string): Promise<number> {
    const found = `from pg_stat_activity where application_name = '${NAME}' and ${where}`;
    const ended = await beside.query<{ pid: number }>(`select pid, pg_terminate_backend(pid) ${found}`);
    const pids = ended.rows.map(({ pid }) => pid);
    await until(async () => (await beside.query('select from pg_stat_activity where pid = any($1)', [pids])).rows.length === 0);
    return pids.length;
}

for (const [name, fill] of Object.entries(DATABASES)) {
    t.test(`an index of ${name}`, async (t) => {
        const index = await indexed(t, await fill(t));

        t.test('is a 503 where its backend is ended before it begins', async (t) => {
            const locking = new pg.Client({ connectionString: index.url });
            await locking.connect();
            await locking.query(`begin; lock table ${index.table} in access exclusive mode`);
            const askedAt = performance.now();
            const reading = read(index);
            await until(async () => (await terminate(index, "wait_event_type = 'Lock'")) > 0);
            const { status, body, error } = await reading;
            t.ok(performance.now() - askedAt < 10_000);
            await locking.end();
            t.strictSame([status, error, JSON.parse(String(body)).statusCode], [503, null, 503]);
            await answersWhole(t, index);
        });

        for (const encoding of ['identity', 'gzip']) {
            t.test(`is broken off where its backend is ended in the midst of a copy (${encoding})`, async (t) => {
                const holding = index.proxy.holdBehind(COPY, SOME);
                const reading = read(index, encoding);
                const { port, goOn } = await holding;
                t.equal(await terminate(index, `client_port = ${port} and state = 'active' and query like 'copy %'`), 1);
                goOn();
                isBrokenOff(t, await reading, encoding);
                await answersWhole(t, index);
            });
        }

        t.test('is broken off in time where its connection falls silent in the midst of a copy', async (t) => {
            const holding = index.proxy.holdBehind(COPY, SOME);
            mock.timers.enable({ apis: ['setTimeout'] });
            t.teardown(() => mock.timers.reset());
            const { result, ended } = underWay(read(index));
            const { silence } = await holding;
            silence();
            let seconds = 0;
            for (; !ended() && seconds < 60; seconds += 1) {
                mock.timers.tick(1_000);
                // For what goes over sockets meanwhile.
                for (let turns = 0; turns < 20; turns += 1) {
                    await turn();
                }
            }
            mock.timers.reset();
            isBrokenOff(t, await result);
            t.ok(seconds < 10, `${seconds} s`);
            await answersWhole(t, index);
        });
    });
}
