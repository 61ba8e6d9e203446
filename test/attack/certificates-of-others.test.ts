import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import type { TLSSocket } from 'node:tls';
import t from 'tap';
import { egressGuard } from '../../lib/egress/guard.ts';
import type { Authentication } from '../../lib/webhooks/exporters/authentication.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { authority, certificate } from '../support/certificates.ts';

/*
 * Exporters of several customers on one receiver: whoever can read what another's connection brought, or use it, has the other's identity.
 */

const ROOT = await authority('Private root');
const SERVER = await certificate({ authority: ROOT });

async function identity(name: string): Promise<Authentication> {
    const { cert, key } = await certificate({ name, authority: ROOT });
    return { ca: ROOT.cert, clientCertificate: { certificate: cert, key } };
}

t.test('no exporter is ever seen with the certificate of another, or over its connection', async (t) => {
    const server = createServer({ ...SERVER, ca: ROOT.cert, requestCert: true, rejectUnauthorized: false }, (request, response) => {
        const socket = request.socket as TLSSocket;
        const shown = socket.getPeerX509Certificate()?.subject ?? 'none';
        seen.push([String(request.headers['x-exporter']), shown, socket.isSessionReused(), socket.remotePort]);
        request.resume().on('end', () => response.writeHead(204).end());
    });
    const seen: (readonly [exporter: string, shown: string, reused: boolean, port: number | undefined])[] = [];
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });

    const sender = httpSender({
        guard: egressGuard({ allow: ['127.0.0.0/8'] }),
        lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]),
    });
    t.teardown(() => sender.close());
    const [one, two, renewed] = [await identity('one'), await identity('two'), await identity('renewed')];
    const messages: readonly [name: string, exporterId: string, authentication: Authentication | null][] = [
        ['one', 'a', one],
        ['two', 'b', two],
        ['none', 'c', { ca: ROOT.cert }],
        // the same exporter after changes of its own, while connections from before are still open
        ['renewed', 'a', renewed],
        ['none', 'a', { ca: ROOT.cert }],
        ['none', 'a', null],
    ];
    for (let round = 0; round < 3; round += 1) {
        for (const [name, exporterId, authentication] of messages) {
            const outcome = await sender.send({
                exporterId,
                url: `https://good.test:${(server.address() as AddressInfo).port}/`,
                trust: authentication === null ? 'all' : 'strict',
                headers: [['X-Exporter', name]],
                authentication,
                body: Buffer.from('{}'),
            });
            t.match(outcome, { code: 'delivered' }, outcome.detail);
        }
    }

    t.equal(seen.length, 18);
    for (const [name, shown, reused] of seen) {
        t.equal(shown, name === 'none' ? 'none' : `CN=${name}`);
        t.equal(reused, false, 'no session goes from one connection to the next');
    }
    t.equal(new Set(seen.map(([, , , port]) => port)).size, messages.length, 'each has one connection of its own, and keeps it');
});
