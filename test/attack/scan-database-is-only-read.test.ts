import t from 'tap';
import { openScanDatabase } from '../../adapters/scan-database/index.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { builtServer } from '../support/built-server.ts';

/** Whoever can change the database's views lets a reading write, with the rights of the reader, unless the session is read-only. */
const TRAP = `
    create table written (at timestamp);
    create function trap() returns boolean language plpgsql as 'begin insert into written values (now()); return true; end';
    alter table workspaces rename to real_workspaces;
    create view workspaces as select * from real_workspaces where trap();`;

t.test('writes nothing into a scan database, whatever its URL and its views say', async (t) => {
    const { url, pool, stop } = await scanDatabase(10);
    t.after(stop);
    await pool.query(TRAP);
    const urls = [url, `${url}?options=${encodeURIComponent('-c default_transaction_read_only=off')}`];
    for (const connectionString of urls) {
        const { inventory, close } = await openScanDatabase({ connectionString });
        await t.rejects(inventory.workspaces.get([], 1), { code: 'UNAVAILABLE', cause: { code: '25006' } });
        await close();
    }
    const { inventory, close } = await openScanDatabase({ pool });
    await t.rejects(inventory.workspaces.get([], 1), { code: 'UNAVAILABLE', cause: { code: '25006' } });
    await close();

    t.same((await pool.query('select * from written')).rows, []);
    await pool.query('select count(*) from workspaces');
    t.not((await pool.query('select * from written')).rowCount, 0, 'the trap works in a session that may write');
});

t.test('serves a scan database by what is built, and writes nothing into it', async (t) => {
    const { url, pool, stop } = await scanDatabase(10);
    t.after(stop);
    const server = await builtServer(t, { env: { SCAN_DATABASE_URL: url } });
    const token = await server.keyWith('inventory:read');
    const headers = { token, authorization: `Bearer ${token}` };
    t.equal((await server.asked('/rest_api/v2/workspaces/1/hosts', { headers })).status, 200);
    await pool.query(TRAP);
    for (const path of ['/rest_api/v2/workspaces', '/rest_api/v2/workspaces/1/hosts', '/api/v1/workspaces', '/api/v1/hosts']) {
        const { status, text } = await server.asked(path, { headers });
        t.equal(status, 503, path);
        t.notMatch(text, /read-only|25006|written/, 'and who asks is not told why');
    }
    t.match(server.output(), /read-only|25006/, 'its operator is');
    t.same((await pool.query('select * from written')).rows, []);
});

t.test('streams 100,000 hosts in batches', async (t) => {
    const { url, pool, stop } = await scanDatabase(100_000);
    t.after(stop);
    // As a server does by itself within a minute; of tables that are as large and unknown it plans each batch badly.
    await pool.query('analyze');
    const { inventory, close } = await openScanDatabase({ connectionString: url });
    t.after(close);
    let [count, largest] = [0, 0];
    for await (const batch of inventory.hosts.list([1])) {
        count += batch.length;
        largest = Math.max(largest, batch.length);
    }
    t.same([count, largest], [100_000, 250]);
});
