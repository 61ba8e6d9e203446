import t from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, get, json, serve } from '../support/served.ts';

t.test('says in one line why it cannot start', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data);
    const port = new URL(served.url).port;
    const inUse = await scanwire(['serve', '--data', `${data}-2`, '--port', port]);
    t.match(inUse, { code: 1, stderr: new RegExp(`^scanwire: Port ${port} of 127.0.0.1 is in use: choose another with --port\\n$`) });
    t.equal(await ended(server, 'SIGINT'), 0);

    const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env }), { code: 1, stderr: /^scanwire: [^\n]+\n$/ });
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env: { SCANWIRE_EGRESS_ALLOW: 'a b' } }), {
        code: 1,
        stderr: /^scanwire: SCANWIRE_EGRESS_ALLOW: Entry 1 of [^\n]*\n$/,
    });
});

t.test('lets commands work on the stores where no server runs', async (t) => {
    const data = dataOf(t);
    const key = await json<{ id: string; key: string }>(data, 'keys', 'create', 'offline');
    t.match(await json(data, 'keys', 'list'), [{ id: key.id, name: 'offline' }]);
    t.match(await json(data, 'import', fixture('scans/udp.xml')), { workspace: { name: 'default' }, hosts: { created: 1 } });
    t.match(await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json')), { deliveries: [] });

    const { server, served } = await serve(t, data);
    t.equal((await get(served, '/rest_api/v2/workspaces', key.key)).status, 200);
    t.equal(await ended(server, 'SIGINT'), 0);
});
