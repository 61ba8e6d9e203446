import type { Pool } from 'pg';
import t, { type Test } from 'tap';
import { TABLES } from '../../../adapters/scan-database/columns.ts';
import { openScanDatabase } from '../../../adapters/scan-database/index.ts';
import { rowsOf } from '../../../lib/inventory/host-pages.ts';
import { served } from '../../plugins/rest-api-v2/served.ts';
import { emptyScanDatabase, type GivenColumns, insertNulls } from './scan-database.ts';

const OPENED_AT = '2022-06-01 12:00:00.25';

/** What makes a row visible. All else that is read of it, and may be null, is. */
const ROWS = {
    workspaces: { id: 1 },
    hosts: { id: 1, workspace_id: 1, address: '192.0.2.1' },
    services: { id: 1, host_id: 1, port: 443, proto: 'tcp' },
    notes: { id: 1, workspace_id: 1, host_id: 1 },
    sessions: { id: 1, host_id: 1, opened_at: OPENED_AT },
    vulns: { id: 1, host_id: 1, service_id: 1 },
};

/** The same below nothing. */
const ASTRAY = {
    services: { id: 2, port: 443, proto: 'tcp' },
    notes: { id: 2, workspace_id: 1 },
    sessions: { id: 2, opened_at: OPENED_AT },
    vulns: { id: 2, host_id: 1 },
};
/** What is below no host, and is seen nowhere. */
const UNSEEN = { vulns: { id: 3 } };

const EPOCH = '1970-01-01T00:00:00+00:00';
const MADE = { created_at: EPOCH, updated_at: EPOCH };

const SERVICE = { id: 1, host_id: 1, ...MADE, port: 443, proto: 'tcp', state: 'unknown', name: '', info: null };
const NOTE = { id: 1, workspace_id: 1, host_id: 1, service_id: null, ...MADE, ntype: null, data: {}, critical: null, seen: null };
const SESSION = {
    id: 1,
    host_id: 1,
    stype: null,
    via_exploit: null,
    via_payload: null,
    desc: null,
    port: null,
    platform: null,
    datastore: {},
    opened_at: '2022-06-01T12:00:00+00:00',
    closed_at: null,
    close_reason: null,
    local_id: null,
    last_seen: null,
    campaign_id: null,
};
const VULN = {
    id: 1,
    host_id: 1,
    service_id: 1,
    ...MADE,
    name: '',
    info: null,
    exploited_at: null,
    vuln_detail_count: 0,
    vuln_attempt_count: 0,
    nexpose_data_vuln_def_id: null,
};

/** What the REST API says of them. */
const ANSWERED: Readonly<Record<string, readonly (GivenColumns & { readonly id: number })[]>> = {
    '/workspaces': [{ id: 1, name: '', boundary: null, description: null, owner_id: null, limit_to_network: false, ...MADE }],
    '/workspaces/1/hosts': [
        {
            id: 1,
            workspace_id: 1,
            ...MADE,
            address: '192.0.2.1',
            mac: '',
            comm: null,
            name: '192.0.2.1',
            state: 'alive',
            os_name: '',
            os_flavor: '',
            os_sp: '',
            os_lang: null,
            arch: null,
            purpose: '',
            info: null,
            comments: null,
            scope: null,
            virtual_host: null,
            note_count: 0,
            vuln_count: 0,
            service_count: 0,
            host_detail_count: 0,
            exploit_attempt_count: 0,
            cred_count: 0,
            nexpose_data_asset_id: null,
            history_count: 0,
            detected_arch: null,
        },
    ],
    '/workspaces/1/hosts/1/services': [SERVICE],
    '/workspaces/1/hosts/1/notes': [NOTE],
    '/workspaces/1/hosts/1/sessions': [SESSION],
    '/workspaces/1/hosts/1/services/1/vulns': [VULN],
    '/workspaces/1/services': [SERVICE],
    '/workspaces/1/notes': [NOTE, { ...NOTE, id: 2, host_id: null }],
    '/workspaces/1/sessions': [SESSION],
    '/workspaces/1/vulns': [VULN, { ...VULN, id: 2, service_id: null }],
};

t.test('answers what is null in every column that may be', async (t) => {
    const { pool, stop } = await emptyScanDatabase();
    t.after(stop);
    await pool.query(`alter table hosts add nexpose_data_asset_id integer, add history_count integer;
        alter table sessions add campaign_id integer; alter table vulns add nexpose_data_vuln_def_id integer`);
    for (const rows of [ROWS, ASTRAY, UNSEEN]) {
        await insertNulls(pool, rows);
    }
    await assertNulls(t, pool);
    const { inventory, close } = await openScanDatabase({ pool });
    t.after(close);
    const { get } = await served({ store: inventory });
    for (const [path, expected] of Object.entries(ANSWERED)) {
        const index = await get(path);
        t.equal(index.body, JSON.stringify(expected), path);
        const ids = expected.map(({ id }) => id);
        const alone = await Promise.all(ids.map(async (id) => JSON.parse((await get(`${path}/${id}`)).body)));
        t.strictSame(alone, expected, `each of ${path} alone`);
        // Rows that are read, in place of text that the database writes.
        t.equal((await get(`${path}?limit=1000`)).body, index.body, `a page of ${path}`);
        t.equal(
            (await get(`${path}?limit=1&after=${(ids.at(-1) as number) - 1}`)).body,
            JSON.stringify(expected.slice(-1)),
            `what ends ${path}`,
        );
    }
    t.equal((await get('/workspaces/1/hosts?state=alive')).body, JSON.stringify(ANSWERED['/workspaces/1/hosts']), 'as a filter sees them');
    t.equal((await get('/workspaces/1/services?state=unknown&name=')).body, JSON.stringify(ANSWERED['/workspaces/1/services']));
    t.strictSame(await rowsOf(inventory.hostVulns.list([1, 1])), await rowsOf(inventory.workspaceVulns.list([1])));
});

/** Of the rows with an id of 1, so that a column that is read some day is among them. */
async function assertNulls(t: Test, pool: Pool): Promise<void> {
    for (const [table, { always, sometimes }] of Object.entries(TABLES)) {
        const [row] = (await pool.query<Record<string, unknown>>(`select * from ${table} where id = 1`)).rows;
        const given = Object.keys(ROWS[table as keyof typeof ROWS]);
        const others = [...always, ...sometimes].filter((column) => !given.includes(column) && column !== 'limit_to_network');
        t.strictSame(
            others.map((column) => [column, row?.[column]]),
            others.map((column) => [column, null]),
            table,
        );
    }
}
