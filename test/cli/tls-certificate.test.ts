import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import tls from 'node:tls';
import t from 'tap';
import { dataFolder } from '../../cli/data-folder.ts';
import { tlsCertificate } from '../../cli/tls-certificate.ts';

const NOW = new Date();
const clock = () => NOW;
const DAY = 86_400_000;

t.test('makes a P-256 pair once and finds it again', async (t) => {
    const folder = dataFolder(t.testdir());
    const made = await tlsCertificate({ folder, host: '127.0.0.1', clock });
    t.same(await tlsCertificate({ folder, host: '0.0.0.0', clock }), made);
    t.equal(statSync(folder.tlsKey).mode & 0o777, 0o600);
    t.equal(createPrivateKey(made.key).asymmetricKeyDetails?.namedCurve, 'prime256v1');
    const certificate = new X509Certificate(made.cert);
    t.match(certificate.subject, 'CN=localhost');
    t.equal(certificate.checkHost('localhost'), 'localhost');
    t.ok(certificate.checkIP('127.0.0.1'));
    t.ok(certificate.checkIP('::1'));
});

t.test('makes another for a host that it does not cover, and when it is about to expire', async (t) => {
    const folder = dataFolder(t.testdir());
    const first = await tlsCertificate({ folder, host: 'localhost', clock });
    const named = await tlsCertificate({ folder, host: 'scans.example.test', clock });
    t.not(named.cert, first.cert);
    t.equal(new X509Certificate(named.cert).checkHost('scans.example.test'), 'scans.example.test');
    t.equal((await tlsCertificate({ folder, host: 'localhost', clock })).cert, named.cert);
    const later = await tlsCertificate({ folder, host: 'localhost', clock: () => new Date(NOW.getTime() + 385 * DAY) });
    t.not(later.cert, named.cert);
});

t.test('is accepted by a client that trusts the certificate and checks the name', async (t) => {
    const { key, cert } = await tlsCertificate({ folder: dataFolder(t.testdir()), host: '127.0.0.1', clock });
    const server = tls.createServer({ key, cert }, (socket) => socket.end()).listen(0, '127.0.0.1');
    t.teardown(() => server.close());
    await once(server, 'listening');
    const { port } = server.address() as { port: number };
    const socket = tls.connect({ host: '127.0.0.1', port, ca: cert });
    await once(socket, 'secureConnect');
    t.ok(socket.authorized);
    socket.destroy();
});

t.test('takes the files of the user, both or none', async (t) => {
    const dir = t.testdir({ 'cert.pem': 'certificate', 'key.pem': 'key' });
    const folder = dataFolder(join(dir, 'data'));
    const given = { certificateFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
    t.same(await tlsCertificate({ folder, host: 'x', clock, ...given }), { cert: 'certificate', key: 'key', selfSigned: null });
    await t.rejects(tlsCertificate({ folder, host: 'x', clock, ...given, keyFile: undefined }), {
        code: 'MISCONFIGURED',
        field: 'tls-key',
    });
    await t.rejects(tlsCertificate({ folder, host: 'x', clock, ...given, keyFile: join(dir, 'no.pem') }), {
        code: 'MISCONFIGURED',
        field: 'tls-key',
    });
});
