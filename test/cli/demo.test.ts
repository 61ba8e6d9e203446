import { statSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ended } from '../support/scanwire.ts';
import { dataOf, get, json, serve } from '../support/served.ts';

t.test('shows the whole way at the first start, and finds it again after a kill', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data, '--demo');
    const { demo } = served;
    t.match(demo, {
        imported: { hosts: { new: 5 } },
        test: { attempt: { code: 'delivered' } },
        investigation: { verification: { ok: true, forms: ['base64'] } },
    });
    t.equal(statSync(join(data, 'scanwire.sock')).mode & 0o777, 0o600);
    t.equal(statSync(data).mode & 0o777, 0o700);

    const { status, body } = await get(served, '/rest_api/v2/workspaces/1/hosts', demo.key.key);
    t.equal(status, 200);
    t.equal((JSON.parse(body) as unknown[]).length, 5);
    t.equal((await get(served, '/rest_api/v2/base', 'wrong')).status, 403);

    await ended(server, 'SIGKILL');
    const again = await serve(t, data, '--demo');
    t.match(again.served.demo, {
        imported: null,
        key: demo.key,
        exporter: { id: demo.exporter.id },
        receiver: demo.receiver,
        investigation: { verification: { ok: true } },
    });
    t.equal((await json<unknown[]>(data, 'keys', 'list')).length, 1);
    t.equal((await json<unknown[]>(data, 'exporters', 'list')).length, 1);
    t.equal(await ended(again.server, 'SIGINT'), 0);
});
