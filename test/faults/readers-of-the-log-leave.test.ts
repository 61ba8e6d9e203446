import { once } from 'node:events';
import t from 'tap';
import { ended, linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { dataOf, get, type Served, usedDataOf } from '../support/served.ts';
import { testDatabase } from '../support/test-database.ts';

/** Nothing listens there, and each process that wants it says so in its log. */
const NO_REDIS = 'redis://127.0.0.1:1';

t.test('a server goes on whose log and output nobody reads any more', async (t) => {
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const env = { DATABASE_URL: database.url, REDIS_URL: NO_REDIS };
    const server = startScanwire(['serve', '--data', dataOf(t), '--port', '0', '--json'], { env });
    t.teardown(() => server.kill('SIGKILL'));
    server.stderr?.destroy();
    const served = (await nextJson(server, linesOf(server))) as unknown as Served;
    server.stdout?.destroy();
    for (let asked = 0; asked < 3; asked += 1) {
        t.equal((await get(served, '/rest_api/v2/workspaces', 'none')).status, 403);
    }
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('a command whose output nobody reads fails all the same', async (t) => {
    const doctor = startScanwire(['doctor', '--data', await usedDataOf(t)]);
    doctor.stdout?.destroy();
    const [code] = await once(doctor, 'exit');
    t.equal(code, 1);
});
