import type net from 'node:net';
import tls from 'node:tls';
import t, { type Test } from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import type { Lookup } from '../../../../lib/egress/resolver.ts';
import {
    type CaptureCode,
    type CaptureOptions,
    captureRecord,
    captureRecords,
    checkRecord,
    type HttpsRecord,
    MAX_RESPONSE_BYTES,
} from '../../../../lib/records/index.ts';
import { stringifyRecord } from '../../../../lib/records/record.ts';
import { certificate } from '../../../support/certificates.ts';
import { type Endpoint, endpoint, type Serve } from '../../../support/endpoint.ts';

const OK = 'HTTP/1.1 200 OK\r\n';
const HELLO = `${OK}Content-Length: 5\r\n\r\nhello`;
const credentials = await certificate();
const other = await certificate({ name: 'other.test' });
const guard = egressGuard({ allow: ['127.0.0.0/8'] });
const toLoopback: Lookup = (_name, _options, done) => done(null, [{ address: '127.0.0.1' }]);

async function started(t: Test, serve: Serve, options: tls.TlsOptions | null = {}): Promise<Endpoint> {
    const made = await endpoint(serve, options === null ? undefined : { ...credentials, ...options });
    t.teardown(() => made.close());
    return made;
}

/** Says this to every request. */
const says =
    (...parts: readonly (string | Buffer)[]) =>
    (socket: net.Socket): void => {
        socket.once('data', () => {
            for (const part of parts) {
                socket.write(part);
            }
        });
    };

async function capture(at: Endpoint | string, options: Partial<CaptureOptions> = {}): Promise<HttpsRecord & { readonly text: string }> {
    const target = typeof at === 'string' ? at : `https://good.test:${at.port}/`;
    const record = await captureRecord(target, { guard, lookup: toLoopback, ...options });
    t.match(checkRecord(record), { ok: true }, 'passes the strict profile');
    t.ok(Buffer.byteLength(stringifyRecord(record)) <= 1_048_576, 'fits into a line');
    return { ...record, text: Buffer.from(record.data, 'base64').toString('latin1') };
}

async function fails(t: Test, at: Endpoint | string, code: CaptureCode, options: Partial<CaptureOptions> = {}): Promise<void> {
    await t.rejects(capture(at, options), { name: 'CaptureFailure', code, message: /^[ -~]{1,300}$/ });
}

t.test('makes a record of what an endpoint says', async (t) => {
    const server = await started(t, says(HELLO));
    const { text, ...record } = await capture(`https://Good.test:${server.port}/a?b#c`);
    t.equal(text, HELLO);
    t.strictSame(record, {
        data: Buffer.from(HELLO).toString('base64'),
        host: 'good.test',
        ip: '127.0.0.1',
        path: '/a?b',
        port: server.port,
        vhost: `good.test:${server.port}`,
        subject: { CN: 'good.test' },
    });
    t.match(
        server.received(),
        /^GET \/a\?b HTTP\/1\.1\r\nHost: good\.test:\d+\r\nUser-Agent: scanwire\/[\d.]+\r\nAccept: \*\/\*\r\nConnection: close\r\n\r\n$/,
    );
});

t.test('sends the headers that were asked for, and refuses those that cannot be', async (t) => {
    const server = await started(t, says(HELLO));
    await capture(server, { acceptEncoding: 'gzip', userAgent: 'probe (ops@example.test)' });
    t.match(server.received(), /User-Agent: probe \(ops@example\.test\)\r\n(.*\r\n)*Accept-Encoding: gzip\r\n/);
    for (const bad of [{ userAgent: 'a\r\nX: y' }, { acceptEncoding: '' }, { maxBytes: MAX_RESPONSE_BYTES + 1 }, { timeout: 0 }]) {
        await t.rejects(captureRecord('good.test', { guard, ...bad }), { code: 'MISCONFIGURED' });
    }

    await t.rejects(captureRecord('good.test', {} as CaptureOptions), { code: 'MISCONFIGURED', field: 'guard' });
});

t.test('leaves out the virtual host where the host is an address', async (t) => {
    const server = await started(t, says(HELLO));
    const record = await capture(`127.0.0.1:${server.port}`);
    t.notOk('vhost' in record);
    t.match(record, { host: '127.0.0.1', ip: '127.0.0.1', path: '/' });
    t.match(server.received(), `Host: 127.0.0.1:${server.port}\r\n`);
});

t.test('asks an address for a virtual host, by SNI and by Host', async (t) => {
    const server = await started(
        t,
        (socket) => socket.once('data', () => socket.end(`${OK}\r\n${(socket as tls.TLSSocket & { servername: string }).servername}`)),
        { SNICallback: (name, done) => done(null, tls.createSecureContext(name === 'other.test' ? other : credentials)) },
    );
    const lookup: Lookup = () => t.fail('nothing is to be looked up');
    const record = await capture(`https://other.test:${server.port}/ 127.0.0.1`, { lookup });
    t.match(record, { host: 'other.test', ip: '127.0.0.1', subject: { CN: 'other.test' }, text: /other\.test$/ });
    t.match(await capture(server), { subject: { CN: 'good.test' }, text: /good\.test$/ });
});

t.test('does not wait for a server that keeps the connection open', async (t) => {
    const chunked = `${OK}Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n`;
    const interim = `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n${HELLO}`;
    for (const answer of [HELLO, chunked, interim, 'HTTP/1.1 204 No Content\r\n\r\n']) {
        const server = await started(t, says(`${answer}and more`));
        t.equal((await capture(server, { timeout: 60_000 })).text, answer);
        await until(() => server.open() === 0);
    }
});

t.test('keeps what an endpoint says that is no HTTP', async (t) => {
    for (const answer of ['<html>hello</html>', '* OK IMAP4rev1 ready\r\n', '\u0000', `${OK.trim()}`]) {
        const server = await started(t, (socket) => socket.once('data', () => socket.end(answer)));
        t.equal((await capture(server)).text, answer);
    }
});

t.test('keeps what came before the connection broke', async (t) => {
    const head = `${OK}Content-Length: 100\r\n\r\n`;
    const resets = await started(t, (socket, reset) => socket.once('data', () => socket.write(head, () => setTimeout(reset, 50))));
    t.equal((await capture(resets)).text, head);

    const closes = await started(t, (socket) => socket.once('data', () => socket.end(`${head}short`)));
    t.equal((await capture(closes)).text, `${head}short`);
});

t.test('cuts an answer that is too long or takes too long', async (t) => {
    const floods = await started(t, (socket) => {
        const flood = (): void => {
            while (!socket.destroyed && socket.write(Buffer.alloc(65_536, 'x'))) {}
        };
        socket.on('drain', flood).once('data', flood);
    });
    t.equal((await capture(floods)).text.length, MAX_RESPONSE_BYTES);
    t.equal((await capture(floods, { maxBytes: 10 })).text.length, 10);

    const chunks = await started(t, (socket) =>
        socket.once('data', () => socket.write(`${OK}Transfer-Encoding: chunked\r\n\r\n${'1\r\na\r\n'.repeat(50_000)}`)),
    );
    t.equal((await capture(chunks, { maxBytes: 100_000 })).text.length, 100_000);

    const head = await started(t, says(`${OK}X: ${'x'.repeat(900_000)}\r\n\r\n`));
    t.equal((await capture(head)).text.length, MAX_RESPONSE_BYTES);

    const trickles = await started(t, (socket) => {
        socket.write('x');
        const timer = setInterval(() => socket.write('x'), 5);
        socket.once('close', () => clearInterval(timer));
    });
    t.match(await capture(trickles, { timeout: 2000 }), { text: /^x+$/ });
    await until(() => floods.open() + chunks.open() + head.open() + trickles.open() === 0);
});

t.test('says why there is no record', async (t) => {
    const silent = await started(t, () => {});
    await fails(t, silent, 'timeout', { timeout: 200 });
    await fails(t, await started(t, (socket) => socket.once('data', () => socket.end())), 'no_answer');
    await fails(t, await started(t, (socket, reset) => socket.once('data', reset)), 'connection_reset');
    await fails(t, await started(t, (socket) => socket.once('data', () => socket.end(HELLO)), null), 'protocol_error');
    await fails(t, await started(t, (socket) => socket.write('220 mail.example ESMTP\r\n'), null), 'protocol_error');
    await fails(t, await started(t, (socket) => socket.end(), null), 'connection_reset');
    await fails(t, await started(t, (socket) => socket.resetAndDestroy(), null), 'connection_reset');
    await fails(t, await started(t, () => {}, null), 'tls_failed', { connectTimeout: 200 });
    await fails(t, await started(t, () => {}, null), 'timeout', { timeout: 200 });
    const alert = Buffer.from('15030300020228', 'hex');
    await fails(t, await started(t, (socket) => socket.write(alert), null), 'tls_failed');
    await fails(
        t,
        await started(t, () => {}, { requestCert: true, rejectUnauthorized: true, minVersion: 'TLSv1.3' }),
        'tls_client_cert_required',
    );

    const closed = await started(t, () => {});
    await closed.close();
    await fails(t, `127.0.0.1:${closed.port}`, 'connect_refused');
    await until(() => silent.open() === 0);
});

t.test('goes where the guard lets it, and nowhere else', async (t) => {
    const server = await started(t, says(HELLO));
    await fails(t, server, 'address_blocked', { guard: egressGuard({ allow: [] }) });
    await fails(t, `127.0.0.1:${server.port}`, 'address_blocked', { guard: egressGuard({ allow: [] }) });
    await fails(t, `https://good.test:${server.port}/ 127.0.0.1`, 'address_blocked', { guard: egressGuard({ allow: ['127.0.0.2'] }) });
    await fails(t, server, 'address_blocked', {
        lookup: (_name, _options, done) => done(null, [{ address: '127.0.0.1' }, { address: '10.0.0.1' }]),
    });
    await fails(t, 'https://metadata.google.internal/', 'address_blocked');
    t.equal(server.received(), '');
});

t.test('refuses what is no target before anything is sent', async (t) => {
    await fails(t, 'http://good.test/', 'invalid_target');
    for (const bad of [{ path: '/a b' }, { path: '/\r\nX: y' }, { path: 'a' }, { host: 'a\r\nb' }, { port: 0 }, { address: 'good.test' }]) {
        const target = { host: 'good.test', port: 443, path: '/', ...bad };
        await t.rejects(captureRecord(target, { guard, lookup: toLoopback }), { code: 'invalid_target' }, JSON.stringify(bad));
    }
});

t.test('ends with the reason of its signal, wherever it is', async (t) => {
    const reason = new Error('enough');
    const stages: Readonly<Record<string, Endpoint>> = {
        handshake: await started(t, () => {}, null),
        answer: await started(t, (socket) => socket.write('some')),
    };
    for (const [stage, server] of Object.entries(stages)) {
        const stop = new AbortController();
        const result = captureRecord(`127.0.0.1:${server.port}`, { guard, signal: stop.signal });
        result.catch(() => {});
        await until(() => server.received() !== '');
        stop.abort(reason);
        await t.rejects(result, { message: 'enough' }, stage);
        await until(() => server.open() === 0);
    }

    await t.rejects(captureRecord('127.0.0.1:1', { guard, signal: AbortSignal.abort(reason) }), { message: 'enough' });
});

t.test('shares a signal between many captures', async (t) => {
    const server = await started(t, says(HELLO));
    const { signal } = new AbortController();
    const warnings: Error[] = [];
    const warned = (warning: Error): void => void warnings.push(warning);
    process.on('warning', warned);
    t.teardown(() => process.off('warning', warned));
    await Promise.all(Array.from({ length: 20 }, () => captureRecord(`127.0.0.1:${server.port}`, { guard, signal })));
    t.same(warnings, []);
});

t.test('takes old TLS, and any certificate', async (t) => {
    for (const maxVersion of ['TLSv1', 'TLSv1.1', 'TLSv1.2', 'TLSv1.3'] as const) {
        const options = { minVersion: 'TLSv1', maxVersion, ciphers: 'ALL:@SECLEVEL=0:TLS_AES_128_GCM_SHA256' } as const;
        t.equal((await capture(await started(t, says(HELLO), options))).text, HELLO, maxVersion);
    }

    const anonymous = await started(t, says(HELLO), { ciphers: 'aNULL:@SECLEVEL=0', maxVersion: 'TLSv1.2', dhparam: 'auto' });
    t.notOk('subject' in (await capture(anonymous)), 'no certificate, no subject');
    const expired = await certificate({ from: '2020-01-01', to: '2021-01-01' });
    t.match(await capture(await started(t, says(HELLO), expired)), { text: HELLO });
});

const greets = (socket: net.Socket): void => void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));

t.test('captures many: gives a result for each target, with the target that was given', async (t) => {
    const server = await started(t, greets);
    const object = { host: '127.0.0.1', port: server.port, path: '/object', note: 'kept' };
    const targets = [`127.0.0.1:${server.port}`, 'http://good.test/', '10.0.0.1:443', object];
    const found = new Map<unknown, string>();
    for await (const result of captureRecords<string | typeof object>(targets, { guard })) {
        found.set(result.target, result.ok ? `${result.record.path}` : result.failure.code);
    }

    t.strictSame(
        found,
        new Map<unknown, string>([
            [targets[0], '/'],
            [targets[1], 'invalid_target'],
            [targets[2], 'address_blocked'],
            [object, '/object'],
        ]),
    );
});

t.test('keeps to the number of connections at once', async (t) => {
    let open = 0;
    let most = 0;
    const server = await started(t, (socket) => {
        open += 1;
        most = Math.max(most, open);
        socket.once('close', () => {
            open -= 1;
        });
        greets(socket);
    });
    let records = 0;
    const targets = Array.from({ length: 60 }, (_, index) => `https://127.0.0.1:${server.port}/${index}`);
    for await (const { ok } of captureRecords(targets, { guard, concurrency: 7 })) {
        records += ok ? 1 : 0;
    }

    t.equal(records, 60);
    t.ok(most > 1 && most <= 8, `${most} at once, one of them just closing`);
});

t.test('closes every connection when the iteration is left', async (t) => {
    const server = await started(
        t,
        (socket) => void socket.once('data', (request) => (String(request).startsWith('GET /0 ') ? socket.end('x') : undefined)),
    );
    const targets = Array.from({ length: 20 }, (_, index) => `https://127.0.0.1:${server.port}/${index}`);
    for await (const { ok } of captureRecords(targets, { guard, concurrency: 10, timeout: 60_000 })) {
        t.ok(ok);
        break;
    }

    await until(() => server.open() === 0);
});

t.test('ends with the reason of its signal', async (t) => {
    const server = await started(t, () => {});
    const stop = new AbortController();
    const results = captureRecords([`127.0.0.1:${server.port}`], { guard, signal: stop.signal });
    const first = results.next();
    await until(() => server.received() !== '');
    stop.abort(new Error('enough'));
    await t.rejects(first, { message: 'enough' });
    await until(() => server.open() === 0);
});

t.test('refuses options that cannot be', async (t) => {
    for (const concurrency of [0, 1.5, 1001]) {
        await t.rejects(captureRecords([], { guard, concurrency }).next(), { code: 'MISCONFIGURED', message: /concurrency/ });
    }
});
