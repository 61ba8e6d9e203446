import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import t from 'tap';
import { assertOnlyRead, openScanSource } from '../../cli/scan-source.ts';
import { scanDatabase } from '../adapters/scan-database/scan-database.ts';
import { scanwire } from '../support/scanwire.ts';
import { fixture, get, json, said, serve, serveIn, usedDataOf } from '../support/served.ts';

t.test('serves the inventory of a scan database that a file names, and imports nothing', async (t) => {
    const database = await scanDatabase(500);
    t.teardown(() => database.stop());
    const data = await usedDataOf(t);
    const file = join(t.testdir(), 'url');
    await writeFile(file, `${database.url}\n`);

    const { served } = await serve(t, data, '--scan-database-file', file);
    t.equal((served as unknown as { scan: string }).scan, new URL(database.url).host + new URL(database.url).pathname);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    const workspaces = JSON.parse((await get(served, '/rest_api/v2/workspaces', key)).body);
    t.match(workspaces, [
        { id: 1, name: 'default' },
        { id: 2, name: 'lab' },
    ]);
    const hosts = JSON.parse((await get(served, '/rest_api/v2/workspaces/1/hosts', key)).body);
    t.equal(hosts.length, 500);
    t.match(hosts[0], { id: 1, address: 'fe80::1', scope: 'eth0' });
    const found = await get(served, '/rest_api/v2/workspaces/1/hosts?address=10.0.0.0/30&state=alive&fields=address', key);
    t.same(JSON.parse(found.body), [{ address: '10.0.0.1' }, { address: '10.0.0.2' }, { address: '10.0.0.3' }]);
    const listed = await json<{ hosts: { id: number }[] }>(data, 'hosts', 'list', '--search', 'FE80');
    t.same(
        listed.hosts.map(({ id }) => id),
        [1],
    );

    const refused = await said(['import', fixture('scans/hosts.jsonl'), '--workspace', 'lab', '--data', data]);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /Cannot import: the REST API reads from a scan database/);
    const kept = await said(['hosts', 'expire', '--not-seen', '1d', '--data', data]);
    t.match(kept, { code: 1, stderr: /Cannot expire hosts: the REST API reads from a scan database/ });
    const moved = await said(['hosts', 'move', '1', '--to', 'lab', '--data', data]);
    t.match(moved, { code: 1, stderr: /Cannot move hosts: the REST API reads from a scan database/ });
    const limited = await said(['workspaces', 'update', 'default', '--no-boundary', '--data', data]);
    t.match(limited, { code: 1, stderr: /Cannot change a workspace: the REST API reads from a scan database/ });
    const exported = await said(['export', '--data', data]);
    t.equal(exported.stderr, '');
    t.equal(exported.stdout.split('\n').length, 501);
    t.match(JSON.parse(exported.stdout.split('\n')[0] ?? ''), { id: 1, address: 'fe80::1', services: [{}] });
    const { rows } = await database.pool.query('select count(*)::integer as count from hosts');
    t.same(rows, [{ count: 501 }]);
});

t.test('refuses what is no scan database, and starts in the same folder later', async (t) => {
    const data = await usedDataOf(t);
    const refused = await scanwire(['serve', '--data', data, '--port', '0', '--scan-database-file', 'no-such-file']);
    t.equal(refused.code, 1);
    t.match(refused.stderr, /no-such-file/);

    const database = await scanDatabase(3);
    t.teardown(() => database.stop());
    const { served } = await serveIn(t, { SCAN_DATABASE_URL: database.url }, data);
    t.match(served, { scan: String });
});

t.test('never tells the URL that it refuses', async (t) => {
    for (const url of ['mysql://u:hunter2@h/d', 'postgres://u:hunter2@h:port/d', '']) {
        const error = await openScanSource(undefined, { SCAN_DATABASE_URL: url }).catch((reason: unknown) => reason);
        t.match(error, { code: 'MISCONFIGURED', field: 'SCAN_DATABASE_URL', message: /must hold a URL that begins with postgres:/ }, url);
        t.notMatch((error as Error).message, /hunter2/);
    }
    t.equal(await openScanSource(undefined, {}), null);
});

t.test('refuses options that would store hosts', async (t) => {
    t.throws(() => assertOnlyRead({ demo: true }), { code: 'INVALID_INPUT', field: 'demo' });
    t.throws(() => assertOnlyRead({ enrich: 'lab' }), { code: 'INVALID_INPUT', field: 'enrich' });
    t.doesNotThrow(() => assertOnlyRead({ demo: false }));
});
