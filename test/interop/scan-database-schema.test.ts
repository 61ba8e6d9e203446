/*
 * The adapter over a database that the schema of the framework's own models has made. `VENDOR_DOCUMENTS` names a folder with a git directory of
 * rapid7/metasploit_data_models, that name its path; what is read is what was read when this was written.
 */
import { execFileSync } from 'node:child_process';
import { join } from 'node:path';
import pg, { type Pool } from 'pg';
import t from 'tap';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import { insertNulls } from '../adapters/scan-database/scan-database.ts';
import { collect } from '../support/collect.ts';
import { testDatabase } from '../support/test-database.ts';

const folder = process.env.VENDOR_DOCUMENTS ?? '';
const MODELS = 'rapid7/metasploit_data_models';
/** Of 2026-04-21. */
const COMMIT = '1bf53a5f52ff5896732337011a16ba0ff304fe55';

const TIME = '2022-06-01 12:00:00';

/** What a row must have, and what it is below; in this order, since they refer to each other. */
const ROWS: Readonly<Record<string, Readonly<Record<string, unknown>>>> = {
    workspaces: { id: 1, created_at: TIME, updated_at: TIME },
    hosts: { id: 1, workspace_id: 1, address: '192.0.2.1' },
    services: { id: 1, host_id: 1, port: 443, proto: 'tcp' },
    notes: { id: 1, workspace_id: 1, host_id: 1 },
    sessions: { id: 1, host_id: 1, opened_at: TIME },
    vulns: { id: 1, host_id: 1, service_id: 1 },
};

async function withPool<T>(connectionString: string, use: (pool: Pool) => Promise<T>): Promise<T> {
    const pool = new pg.Pool({ connectionString, max: 1 });
    try {
        return await use(pool);
    } finally {
        await pool.end();
    }
}

async function only<Row extends { readonly id: number }>(rows: Collection<Row>, path: readonly number[]): Promise<Row | undefined> {
    const [row, ...more] = (await collect(rows.list(path))).flat();
    t.same(more, []);
    return row;
}

t.test(
    'reads what the schema of the framework allows, null wherever it can be',
    { skip: folder === '' && 'VENDOR_DOCUMENTS names no folder' },
    async (t) => {
        const schema = execFileSync('git', ['-C', join(folder, MODELS), 'show', `${COMMIT}:spec/dummy/db/structure.sql`], {
            encoding: 'utf8',
        });
        const { url, drop } = await testDatabase();
        t.after(drop);
        // It leaves a session without a search path.
        await withPool(url, (pool) => pool.query(schema));
        await withPool(url, (pool) => insertNulls(pool, ROWS));
        const { inventory, close } = await openScanDatabase({ connectionString: url });
        t.after(close);

        const time = new Date('2022-06-01T12:00:00Z');
        t.match(await only(inventory.workspaces, []), { id: 1, name: '', created_at: time, limit_to_network: false });
        const counts = { note_count: 0, vuln_count: 0, service_count: 0, host_detail_count: 0, exploit_attempt_count: 0, cred_count: 0 };
        const host = { address: '192.0.2.1', name: '192.0.2.1', state: 'alive', created_at: time, arch: null, ...counts };
        t.match(await only(inventory.hosts, [1]), host);
        t.match(await only(inventory.services, [1, 1]), { port: 443, proto: 'tcp', state: 'unknown', name: '', created_at: time });
        t.match(await only(inventory.notes, [1, 1]), { data: {}, created_at: time });
        t.match(await only(inventory.sessions, [1, 1]), { datastore: {}, opened_at: time, closed_at: null });
        t.match(await only(inventory.vulns, [1, 1, 1]), { name: '', vuln_detail_count: 0, vuln_attempt_count: 0, created_at: time });
    },
);
