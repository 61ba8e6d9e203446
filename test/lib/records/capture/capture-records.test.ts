import type net from 'node:net';
import t, { type Test } from 'tap';
import { egressGuard } from '../../../../lib/egress/egress-guard.ts';
import { captureRecords } from '../../../../lib/records/index.ts';
import { certificate } from '../../../support/certificates.ts';
import { type Endpoint, endpoint } from '../../../support/endpoint.ts';
import { until } from '../../../support/until.ts';

const credentials = await certificate();
const guard = egressGuard({ allow: ['127.0.0.1'] });

async function started(t: Test, serve: (socket: net.Socket) => void): Promise<Endpoint> {
    const made = await endpoint(serve, credentials);
    t.teardown(() => made.close());
    return made;
}

const greets = (socket: net.Socket): void => void socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n'));

t.test('gives a result for each target, with the target that was given', async (t) => {
    const server = await started(t, greets);
    const object = { host: '127.0.0.1', port: server.port, path: '/object', note: 'kept' };
    const targets = [`127.0.0.1:${server.port}`, 'http://good.test/', '127.0.0.2:443', object];
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
