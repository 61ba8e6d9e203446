import { once } from 'node:events';
import { createServer, IncomingMessage } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { type AddressInfo, connect } from 'node:net';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { protect } from '../../../lib/protect/connections.ts';
import { certificate } from '../../support/certificates.ts';

const MAX = 4;

/** Node answers the second and the third by itself. */
const REQUESTS = {
    'a request': 'GET / HTTP/1.1\r\nHost: a\r\n\r\n',
    'one without a host': 'GET / HTTP/1.1\r\n\r\n',
    'one that expects what nobody knows': 'GET / HTTP/1.1\r\nHost: a\r\nExpect: b\r\n\r\n',
    'one to upgrade': 'GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: b\r\n\r\n',
};

for (const isTls of [false, true]) {
    t.test(`ends a connection with the first request that is too many, ${isTls ? 'with' : 'without'} TLS`, async (t) => {
        let made = 0;
        class Counted extends IncomingMessage {
            constructor(...given: ConstructorParameters<typeof IncomingMessage>) {
                super(...given);
                made += 1;
            }
        }
        const options = { IncomingMessage: Counted };
        const server = isTls ? createSecureServer({ ...options, ...(await certificate()) }) : createServer(options);
        server.on('request', (_, response) => setImmediate(() => response.end('ok')));
        protect(server, { maxUnanswered: MAX });
        server.listen(0, '127.0.0.1');
        await once(server, 'listening');
        t.teardown(() => server.close().closeAllConnections());
        const { port } = server.address() as AddressInfo;
        const connected = async () => {
            const socket = isTls ? connectTls({ port, rejectUnauthorized: false }) : connect(port, '127.0.0.1');
            await once(socket, isTls ? 'secureConnect' : 'connect');
            return socket.on('error', () => {});
        };

        for (const [name, text] of Object.entries(REQUESTS)) {
            made = 0;
            const socket = await connected();
            socket.write(text.repeat(200));
            await once(socket.resume(), 'close');
            t.ok(made <= MAX + 1, `${made} were made of ${name}`);
        }

        const patient = await connected();
        for (let piece = 0; piece < 3; piece += 1) {
            patient.write(REQUESTS['a request'].repeat(MAX));
            for (let answers = 0; answers < MAX; ) {
                const [text] = await once(patient, 'data');
                answers += String(text).split('HTTP/1.1 200').length - 1;
            }
        }
        patient.destroy();
    });
}
