import { once } from 'node:events';
import { createServer, type ServerResponse } from 'node:http';
import { type AddressInfo, connect, type Socket } from 'node:net';
import t, { type Test } from 'tap';
import { ask } from '../../cli/client.ts';

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
