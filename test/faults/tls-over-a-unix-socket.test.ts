import { once } from 'node:events';
import type { ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect, type TLSSocket } from 'node:tls';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { protect } from '../../lib/protect/connections.ts';
import { certificate } from '../support/certificates.ts';

t.test('handshakes that come together over a Unix socket, which has no addresses, are told apart', async (t) => {
    const held: ServerResponse[] = [];
    let [time, secured] = [0, 0];
    const server = createServer(await certificate(), (_, response) => void held.push(response)).on('secureConnection', () => {
        secured += 1;
    });
    const protection = protect(server, { now: () => time, handshakeTimeout: 1000, headTimeout: 2000 });
    const path = join(t.testdir(), 'tls.sock');
    await once(server.listen(path), 'listening');
    t.teardown(() => {
        server.close();
        server.closeAllConnections();
    });

    // Both are accepted before TLS begins on either.
    const plain = [connectPlain(path), connectPlain(path)];
    await until(() => protection.connections() === 2);
    const [asking, silent] = plain.map((socket) => {
        const secure = connect({ socket, rejectUnauthorized: false }).on('error', () => {});
        t.teardown(() => secure.destroy());
        return secure;
    }) as [TLSSocket, TLSSocket];
    await until(() => secured === 2);

    asking.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
    await until(() => held.length === 1);
    time += 1000;
    protection.sweep();
    held[0]?.end('ok');
    const [answer] = (await Promise.race([once(asking, 'data'), once(asking, 'close')])) as unknown[];
    t.match(String(answer), /^HTTP\/1\.1 200 /, 'an answer that took as long as a handshake may');

    t.notOk(silent.destroyed);
    time += 1000;
    protection.sweep();
    await until(() => silent.resume().destroyed);
    await until(() => protection.connections() === 1);
    t.notOk(asking.destroyed, 'only the one that sent no head is ended');
});
