import { once } from 'node:events';
import { request } from 'node:http';
import { server as hapiServer } from '@hapi/hapi';
import t from 'tap';
import { ScanwireError } from '../../../lib/errors.ts';
import { plugin } from '../../../plugins/admin-console/index.ts';

for (const [reason, query, message] of [
    ['its reader refuses it', '?workspace=default', 'Line 1: no'],
    ['a parameter is missing', '', 'workspace is required'],
] as const) {
    t.test(`refuses a stream only after its end, so that the sender gets to read why: ${reason}`, async (t) => {
        let reach = (): void => {};
        const reached = new Promise<void>((resolve) => {
            reach = resolve;
        });
        const inventory = {
            async importHosts(): Promise<never> {
                reach();
                throw new ScanwireError('INVALID_INPUT', 'Line 1: no');
            },
        };
        const server = hapiServer({ port: 0, host: '127.0.0.1' });
        await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
        server.ext('onPreAuth', (_, h) => {
            if (query === '') {
                reach();
            }

            return h.continue;
        });
        await server.start();
        t.teardown(() => server.stop());

        const { port } = server.info;
        const headers = { 'content-type': 'application/octet-stream' };
        const outgoing = request({ port, method: 'POST', path: `/admin-console/import${query}`, headers, agent: false });
        let answered = false;
        outgoing.once('response', () => {
            answered = true;
        });
        const response = once(outgoing, 'response');
        outgoing.write('not a scan\n');
        await reached;
        // What the server had to say by now would come before its answer to a later request.
        t.equal((await fetch(`${server.info.uri}/other`)).status, 404);
        t.equal(answered, false);

        outgoing.end();
        const [incoming] = await response;
        t.equal(incoming.statusCode, 400);
        t.match(JSON.parse(Buffer.concat(await incoming.toArray()).toString()), { error: { code: 'INVALID_INPUT', message } });
    });
}
