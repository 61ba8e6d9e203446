import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { ask, download } from '../../cli/admin-client.ts';

/** A connection to a server that answers as it is told. */
async function serverThat(t: Test, answer: (response: ServerResponse) => void): Promise<Socket> {
    const server = createServer((request, response) => {
        request.resume().on('end', () => answer(response));
    }).listen(0, '127.0.0.1');
    t.teardown(() => server.close());
    await once(server, 'listening');
    const connection = connect((server.address() as AddressInfo).port, '127.0.0.1');
    await once(connection, 'connect');
    return connection;
}

async function* document(): AsyncGenerator<Uint8Array> {
    yield Buffer.from('x');
}

const PROGRESS = { phase: 'storing', done: 1, total: 2 };
const BROKE_OFF = { name: 'ScanwireError', code: 'UNAVAILABLE', message: 'The server broke off' };

for (const [name, rest, cut] of [
    ['a connection that is lost', '', (response: ServerResponse) => response.socket?.destroy()],
    ['a connection that is reset', '', (response: ServerResponse) => response.socket?.resetAndDestroy()],
    ['an answer that ends', '', (response: ServerResponse) => response.end()],
    ['an answer that ends within a line', '{"resu', (response: ServerResponse) => response.end()],
] as const) {
    t.test(`${name} in the middle of an import says that the server broke off`, async (t) => {
        let cutOff = (): void => undefined;
        const server = await serverThat(t, (response) => {
            response.writeHead(200, { 'content-type': 'application/x-ndjson' });
            response.write(`${JSON.stringify({ progress: PROGRESS })}\n${rest}`);
            cutOff = () => void cut(response);
        });
        const seen: object[] = [];
        const onProgress = (progress: object): void => {
            seen.push(progress);
            cutOff();
        };
        await t.rejects(ask(server, 'importScan', { workspace: 'w', source: document(), onProgress } as never), BROKE_OFF);
        t.strictSame(seen, [PROGRESS]);
    });
}

t.test('so does one that is lost in the middle of an answer', async (t) => {
    const server = await serverThat(t, (response) => {
        response.writeHead(200, { 'content-type': 'application/json' });
        response.write('[', () => response.socket?.resetAndDestroy());
    });
    await t.rejects(ask(server, 'listKeys', {}), BROKE_OFF);
});

t.test('an import has ended with its result, also where the end of the answer is still on its way', async (t) => {
    const result = { hosts: { new: 1 } };
    let closed: Promise<unknown> = Promise.resolve();
    const server = await serverThat(t, (response) => {
        closed = once(response, 'close');
        response.writeHead(200, { 'content-type': 'application/x-ndjson' });
        response.write(`${JSON.stringify({ progress: PROGRESS })}\n${JSON.stringify({ result })}\n`);
    });
    t.same(await ask(server, 'importScan', { workspace: 'w', source: document(), onProgress: () => {} } as never), result);
    await closed;
});

t.test('the digest of a scan goes out as a header, and nothing of it in the query', async (t) => {
    for (const [sha256, header] of [
        ['YQ==', 'sha-256=:YQ==:'],
        [undefined, undefined],
    ] as const) {
        const server = await serverThat(t, (response) => {
            const { url, headers } = response.req;
            response.end(JSON.stringify({ url, digest: headers['content-digest'] }));
        });
        const answer = (await ask(server, 'importScan', { workspace: 'w', source: document(), sha256 })) as object;
        t.same(answer, { url: '/import?workspace=w', ...(header && { digest: header }) });
    }
});

const QUERY = { workspace: 'w', format: 'csv' } as const;

t.test('a file that breaks off is never taken for a whole one', async (t) => {
    for (const cut of [
        (response: ServerResponse) => response.socket?.destroy(),
        (response: ServerResponse) => response.socket?.resetAndDestroy(),
    ]) {
        const server = await serverThat(t, (response) => {
            response.writeHead(200, { 'content-type': 'text/csv' });
            response.write('id\r\n', () => cut(response));
        });
        const pieces = await download(server, 'exportWorkspace', QUERY);
        await t.rejects(async () => {
            for await (const _piece of pieces);
        }, BROKE_OFF);
    }
    const dead = await serverThat(t, (response) => response.socket?.destroy());
    await t.rejects(download(dead, 'exportWorkspace', QUERY), BROKE_OFF);
});

t.test('a file that is refused says why, and one that nobody reads to its end is let go', async (t) => {
    const error = { code: 'NOT_FOUND', field: 'workspace', message: 'Unknown workspace "w"' };
    const refusing = await serverThat(t, (response) => response.writeHead(404).end(JSON.stringify({ error })));
    await t.rejects(download(refusing, 'exportWorkspace', QUERY), error);

    let closed: Promise<unknown> = Promise.resolve();
    const endless = await serverThat(t, (response) => {
        closed = once(response, 'close');
        response.writeHead(200).write('id');
    });
    for await (const piece of await download(endless, 'exportWorkspace', QUERY)) {
        t.equal(Buffer.from(piece).toString(), 'id');
        break;
    }
    await closed;
});
