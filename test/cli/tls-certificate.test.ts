import { createPrivateKey, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { statSync } from 'node:fs';
import { rm, truncate, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import tls from 'node:tls';
import t, { type Test } from 'tap';
import { dataFolder, replaceFile } from '../../cli/data-folder.ts';
import { type Renewal, renewCertificate, type TlsPair, tlsCertificate } from '../../cli/tls-certificate.ts';
import { handshakeOptions } from '../../lib/protect/handshakes.ts';

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
    const dir = t.testdir({ 'other.txt': 'neither' });
    const folder = dataFolder(join(dir, 'data'));
    const made = await tlsCertificate({ folder: dataFolder(join(dir, 'made')), host: 'x', clock });
    const others = await tlsCertificate({ folder: dataFolder(join(dir, 'others')), host: 'x', clock });
    const pem = async (name: string, text: string): Promise<string> => {
        await writeFile(join(dir, name), text);
        return join(dir, name);
    };
    const given = { certificateFile: await pem('cert.pem', made.cert), keyFile: await pem('key.pem', made.key) };
    t.same(await tlsCertificate({ folder, host: 'x', clock, ...given }), { ...made, selfSigned: null });
    process.env.SERVER_KEY = made.key;
    t.teardown(() => delete process.env.SERVER_KEY);
    const { certificateFile } = given;
    t.same(await tlsCertificate({ folder, host: 'x', clock, certificateFile, keyVariable: 'SERVER_KEY' }), { ...made, selfSigned: null });

    const refused: [object, string, RegExp][] = [
        [{ keyFile: undefined }, 'tls-key', /--tls-key is missing/],
        [{ keyFile: join(dir, 'no.pem') }, 'tls-key', /Cannot read the file of --tls-key/],
        [{ keyFile: join(dir, 'other.txt') }, 'tls-key', /--tls-key is not a private key/],
        [{ certificateFile: undefined }, 'tls-cert', /--tls-cert is missing/],
        [{ certificateFile: join(dir, 'other.txt') }, 'tls-cert', /--tls-cert is not a certificate/],
        [{ keyFile: await pem('others.pem', others.key) }, 'tls-key', /does not belong to the certificate/],
    ];
    for (const [change, field, message] of refused) {
        await t.rejects(tlsCertificate({ folder, host: 'x', clock, ...given, ...change }), { code: 'MISCONFIGURED', field, message });
    }
    const twice = tlsCertificate({ folder, host: 'x', clock, ...given, keyVariable: 'SERVER_KEY' });
    await t.rejects(twice, { code: 'INVALID_INPUT', message: 'Give --tls-key or --tls-key-env, and only one of them' });
});

t.test('makes a pair again of which a crash has left two halves, or one', async (t) => {
    const root = t.testdir();
    const other = await tlsCertificate({ folder: dataFolder(join(root, 'other')), host: '127.0.0.1', clock });
    const crashes: Readonly<Record<string, (folder: ReturnType<typeof dataFolder>) => Promise<unknown>>> = {
        'another key': ({ tlsKey }) => replaceFile(tlsKey, other.key),
        'another certificate': ({ tlsCertificate: file }) => replaceFile(file, other.cert),
        'no key': ({ tlsKey }) => rm(tlsKey),
        'no certificate': ({ tlsCertificate: file }) => rm(file),
        'half of a key': ({ tlsKey }) => truncate(tlsKey, 100),
        'an empty certificate': ({ tlsCertificate: file }) => truncate(file),
    };
    for (const [left, crash] of Object.entries(crashes)) {
        const folder = dataFolder(join(root, left));
        const first = await tlsCertificate({ folder, host: '127.0.0.1', clock });
        await crash(folder);
        const healed = await tlsCertificate({ folder, host: '127.0.0.1', clock });
        t.not(healed.cert, first.cert, left);
        t.ok(new X509Certificate(healed.cert).checkPrivateKey(createPrivateKey(healed.key)), left);
        t.same(await tlsCertificate({ folder, host: '127.0.0.1', clock }), healed, `${left}: for good`);
    }
});

t.test('gives new connections the pair that the files have by now, and keeps the former where that is none', async (t) => {
    const dir = t.testdir();
    const [first, second, third] = (await Promise.all(
        ['first', 'second', 'third'].map((name) => tlsCertificate({ folder: dataFolder(join(dir, name)), host: '127.0.0.1', clock })),
    )) as [TlsPair, TlsPair, TlsPair];
    const [certificateFile, keyFile] = [join(dir, 'cert.pem'), join(dir, 'key.pem')];
    const write = async ({ cert, key }: Pick<TlsPair, 'cert' | 'key'>) => {
        await writeFile(certificateFile, cert);
        await writeFile(keyFile, key);
    };
    await write(first);
    const options = { folder: dataFolder(join(dir, 'data')), host: '127.0.0.1', clock, certificateFile, keyFile };
    const pair = await tlsCertificate(options);
    const { listening, errors, look } = await renewing(t, { options, pair });
    t.ok(await shows(listening, first));

    await write(second);
    await look();
    t.ok(await shows(listening, second));

    await write({ cert: third.cert, key: second.key });
    await look();
    await look();
    t.equal(errors.length, 1, 'it is said once');
    t.equal(
        errors[0],
        `The certificate is not renewed from ${certificateFile} and ${keyFile}, and the former stays: The key of --tls-key does not belong to the certificate of --tls-cert`,
    );
    await rm(keyFile);
    await look();
    t.match(errors[1], /and the former stays: Cannot read the file of --tls-key: ENOENT$/);
    t.ok(await shows(listening, second));

    await write(third);
    await look();
    t.ok(await shows(listening, third));
    const weak = tls.connect({ ...listening, ca: third.cert, ciphers: 'AES128-GCM-SHA256', maxVersion: 'TLSv1.2' });
    await t.rejects(once(weak, 'secureConnect'), { code: /HANDSHAKE_FAILURE/ }, 'under the same rules as before');
});

t.test('renews the certificate of a key that it was told once, and its own before it expires', async (t) => {
    const dir = t.testdir();
    const folder = dataFolder(join(dir, 'data'));
    const made = await tlsCertificate({ folder, host: '127.0.0.1', clock });
    const certificateFile = join(dir, 'cert.pem');
    await writeFile(certificateFile, made.cert);
    const brought = await renewing(t, { options: { folder, host: '127.0.0.1', clock, certificateFile, keyFile: '-' }, pair: made });
    await writeFile(certificateFile, `${made.cert}\n${made.cert}`);
    await brought.look();
    t.same(brought.errors, [], 'stdin is read once');
    t.ok(await shows(brought.listening, made));

    let now = NOW;
    const own = await renewing(t, { options: { folder, host: '127.0.0.1', clock: () => now }, pair: made });
    now = new Date(NOW.getTime() + 385 * DAY);
    await own.look();
    t.notOk(await shows(own.listening, made));
    t.same(own.errors, []);
});

/** A listener whose certificate is renewed by ticks. */
async function renewing(t: Test, renewal: Pick<Renewal, 'options' | 'pair'>) {
    const { key, cert } = renewal.pair;
    const server = tls.createServer({ key, cert, ...handshakeOptions() }, (socket) => socket.end()).listen(0, '127.0.0.1');
    server.on('tlsClientError', () => {});
    t.teardown(() => server.close());
    await once(server, 'listening');
    const errors: string[] = [];
    let tick = (): void => {};
    const end = renewCertificate({
        ...renewal,
        listeners: [server],
        ticker(task) {
            tick = task;
            return () => {};
        },
        onError: (error) => errors.push((error as Error).message),
    });
    return {
        listening: { host: '127.0.0.1', port: (server.address() as { port: number }).port },
        errors,
        async look(): Promise<void> {
            tick();
            await end();
        },
    };
}

/** Whether a new connection is shown this certificate. */
async function shows(listening: { readonly host: string; readonly port: number }, { cert }: Pick<TlsPair, 'cert'>): Promise<boolean> {
    const socket = tls.connect({ ...listening, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { raw } = socket.getPeerCertificate();
    socket.destroy();
    return raw.equals(new X509Certificate(cert).raw);
}
