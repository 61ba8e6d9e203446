import { once } from 'node:events';
import { request } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { adminRoutes } from '../../cli/admin-routes.ts';
import type { System } from '../../cli/system.ts';
import { ScanwireError } from '../../lib/errors.ts';

t.test('refuses a stream only after its end, so that the sender gets to read why', async (t) => {
    let refused = (): void => {};
    const refusal = new Promise<void>((resolve) => {
        refused = resolve;
    });
    const inventory = {
        async importHosts(): Promise<never> {
            refused();
            throw new ScanwireError('INVALID_INPUT', 'Line 1: no');
        },
    };
    const server = hapiServer({ port: 0, host: '127.0.0.1' });
    server.route(adminRoutes({ inventory } as unknown as System));
    await server.start();
    t.teardown(() => server.stop());

    const outgoing = request({ port: server.info.port, method: 'POST', path: '/import?workspace=default', agent: false });
    let answered = false;
    outgoing.once('response', () => {
        answered = true;
    });
    const response = once(outgoing, 'response');
    outgoing.write('not a scan\n');
    await refusal;
    await sleep(100);
    t.equal(answered, false);

    outgoing.end();
    const [incoming] = await response;
    t.equal(incoming.statusCode, 400);
    t.match(JSON.parse(Buffer.concat(await incoming.toArray()).toString()), { error: { code: 'INVALID_INPUT', message: 'Line 1: no' } });
});
