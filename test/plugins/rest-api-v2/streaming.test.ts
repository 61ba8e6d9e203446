import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { setImmediate as turn } from 'node:timers/promises';
import * as zlib from 'node:zlib';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { Host, HostInput } from '../../../lib/inventory/host.ts';
import type { Collection, InventoryStore } from '../../../lib/inventory/store.ts';
import { type Served, served } from './served.ts';

/** The listing of hosts, as the test wants it; counts its readings. */
interface Probe {
    readonly store: InventoryStore;
    /** Readings that have begun and not ended. */
    open(): number;
    batches(): number;
}

type Listing = (batch: (count: number) => readonly Host[], signal: AbortSignal | undefined) => AsyncGenerator<readonly Host[]>;

async function probe(listing: Listing): Promise<Probe> {
    const store = memoryInventory();
    await store.importHosts('default', oneHost());
    const host = (await store.hosts.get([1], 1)) as Host;
    let open = 0;
    let batches = 0;

    const hosts: Collection<Host> = {
        get: store.hosts.get,
        async *list(_parents, { signal } = {}) {
            open += 1;
            try {
                for await (const batch of listing((count) => Array.from({ length: count }, (_, id) => ({ ...host, id })), signal)) {
                    batches += 1;
                    yield batch;
                }
            } finally {
                open -= 1;
            }
        },
    };
    return { store: { ...store, hosts }, open: () => open, batches: () => batches };
}

async function* oneHost(): AsyncIterable<HostInput> {
    yield { address: '192.0.2.1' };
}

async function started(t: Test, options: Parameters<typeof served>[0]): Promise<Served> {
    const running = await served(options);
    await running.server.start();
    t.teardown(() => running.server.stop({ timeout: 100 }));
    return running;
}

function request({ server, headers }: Served, path: string, more: http.RequestOptions = {}): http.ClientRequest {
    const sent = { ...headers, ...(more.headers as object) };
    return http.request(`${server.info.uri}/rest_api/v2${path}`, { agent: false, ...more, headers: sent }).end();
}

async function answer(sent: http.ClientRequest): Promise<IncomingMessage> {
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    return message;
}

/** The body as far as it came, and the error that ended it. */
async function received(message: IncomingMessage): Promise<{ body: string; error: Error | null }> {
    const chunks: Buffer[] = [];
    try {
        for await (const chunk of message) {
            chunks.push(chunk);
        }
        return { body: Buffer.concat(chunks).toString(), error: null };
    } catch (error) {
        return { body: Buffer.concat(chunks).toString(), error: error as Error };
    }
}

t.test('breaks the connection when the store fails after the first batch', async (t) => {
    const { store, open } = await probe(async function* (batch) {
        yield batch(1);
        await turn();
        yield batch(100);
        throw new Error('the database went away');
    });
    const running = await started(t, { store });
    const message = await answer(request(running, '/workspaces/1/hosts'));
    const { body, error } = await received(message);

    t.equal(message.statusCode, 200);
    t.match(error, { code: 'ECONNRESET' });
    t.equal(message.complete, false);
    t.throws(() => JSON.parse(body));
    t.equal(open(), 0);
});

t.test('answers 503 when the store fails behind the first batch before anything was sent', async (t) => {
    const { store, open } = await probe(async function* (batch) {
        yield batch(1);
        throw new Error('the database went away');
    });
    const message = await answer(request(await started(t, { store }), '/workspaces/1/hosts'));
    t.equal(message.statusCode, 503);
    t.equal(JSON.parse((await received(message)).body).statusCode, 503);
    t.equal(open(), 0);
});

t.test('tells the length of an index that is there at once, and of no other', async (t) => {
    for (const [waits, count] of [
        [false, 1],
        [false, 20],
        [true, 20],
        [false, 5_000],
    ] as const) {
        const { store } = await probe(async function* (batch) {
            yield batch(count);
            await (waits && turn());
        });
        const message = await answer(request(await started(t, { store }), '/workspaces/1/hosts'));
        const { body } = await received(message);
        t.equal(JSON.parse(body).length, count);
        t.equal(message.headers.vary, 'accept-encoding', 'also of what is too short to be compressed');
        t.equal(message.headers['content-length'], waits || count > 20 ? undefined : String(Buffer.byteLength(body)), `${waits}, ${count}`);
    }
});

t.test('breaks the connection of a compressed answer too', async (t) => {
    const { store } = await probe(async function* (batch) {
        yield batch(1);
        await turn();
        throw new Error('the database went away');
    });
    const running = await started(t, { store });
    // The first bytes may still be in the compressor, and the connection then breaks before the head of the answer.
    const reading = answer(request(running, '/workspaces/1/hosts', { headers: { 'accept-encoding': 'gzip' } })).then(received);
    const { error } = await reading.catch((error: Error) => ({ error }));

    t.match(error, { code: 'ECONNRESET' });
});

t.test('breaks the connection of lines of JSON, compressed or not', async (t) => {
    const { store, open } = await probe(async function* (batch) {
        yield batch(1);
        await turn();
        throw new Error('the database went away');
    });
    const running = await started(t, { store });
    for (const headers of [{}, { 'accept-encoding': 'gzip' }]) {
        const sent = request(running, '/workspaces/1/hosts', { headers: { accept: 'application/x-ndjson', ...headers } });
        const { error } = await answer(sent)
            .then(received)
            .catch((error: Error) => ({ error }));
        t.match(error, { code: 'ECONNRESET' });
        t.equal(open(), 0);
    }
});

t.test(
    'answers HTTP/1.0, where the end of the connection is that of the answer, in JSON, which does not parse when it is cut',
    async (t) => {
        const { store } = await probe(async function* (batch) {
            yield batch(300);
            await turn();
            yield batch(300);
            await turn();
            throw new Error('the database went away');
        });
        const { server, headers } = await started(t, { store });
        for (const accept of ['application/x-ndjson', 'text/csv']) {
            const socket = net.connect(Number(server.info.port), '127.0.0.1');
            socket.write(`GET /rest_api/v2/workspaces/1/hosts HTTP/1.0\r\ntoken: ${headers.token}\r\naccept: ${accept}\r\n\r\n`);
            const answered = await text(socket);
            const [head = '', body = ''] = answered.split('\r\n\r\n');
            t.match(head, 'HTTP/1.1 200 OK', accept);
            t.match(head, 'content-type: application/json', accept);
            t.match(body, /^\[\{"id":0,/, accept);
            t.throws(() => JSON.parse(body), accept);
        }
    },
);

/** What this Node can undo. It has zstd from 22.15 on. */
const { zstdDecompressSync } = zlib as { zstdDecompressSync?: (bytes: Buffer) => Buffer };
const best = zstdDecompressSync === undefined ? 'gzip' : 'zstd';
const undo = { gzip: zlib.gunzipSync, zstd: zstdDecompressSync ?? zlib.gunzipSync };

t.test('compresses indexes with what is accepted, zstd where Node has it', async (t) => {
    const { store } = await probe(async function* (batch) {
        yield batch(300);
        yield batch(300);
    });
    const { server, headers } = await served({ store });
    for (const accept of ['application/x-ndjson', 'text/csv', 'application/json']) {
        const ask = (encoding: string) =>
            server.inject({ url: '/rest_api/v2/workspaces/1/hosts', headers: { ...headers, accept, 'accept-encoding': encoding } });
        const plain = await ask('identity');
        for (const [wanted, given] of [
            ['gzip', 'gzip'],
            ['gzip, deflate, br, zstd', best],
            ['zstd;q=0.5, gzip;q=0.8', 'gzip'],
            ['zstd;q=0, gzip', 'gzip'],
            ['gzip;q=0.1, ZSTD;q=0.2', best],
        ] as const) {
            const compressed = await ask(wanted);
            t.equal(compressed.headers['content-encoding'], given, `${accept}, ${wanted}`);
            t.match(compressed.headers.vary, 'accept-encoding', accept);
            t.equal(undo[given](compressed.rawPayload).toString(), plain.payload, accept);
        }
        const alone = await ask('zstd');
        t.equal(alone.headers['content-encoding'], zstdDecompressSync && 'zstd', accept);
        t.equal((zstdDecompressSync?.(alone.rawPayload) ?? alone.rawPayload).toString(), plain.payload, accept);
        for (const unmet of ['compress;q=1', 'zstd;q=0', 'gzip;q=0', 'zstd;q=x', '*;q=0', ';;,']) {
            const { statusCode, payload, headers } = await ask(unmet);
            t.notOk('content-encoding' in headers, `${accept}, ${unmet}`);
            t.strictSame([statusCode, payload], [200, plain.payload], `${accept}, ${unmet}`);
        }
    }
});

t.test('compresses as the server is set to, or not at all', async (t) => {
    const { store } = await probe(async function* (batch) {
        yield batch(200);
    });
    const sizes = async (compression: object | false): Promise<readonly (readonly [encoding: unknown, vary: unknown, bytes: number])[]> => {
        const { server, headers } = await served({ store }, compression === false ? { compression } : { routes: { compression } });
        const asked = ['application/x-ndjson', 'application/json'].map(async (accept) => {
            const sent = { ...headers, accept, 'accept-encoding': 'gzip' };
            const { headers: given, rawPayload } = await server.inject({ url: '/rest_api/v2/workspaces/1/hosts', headers: sent });
            return [given['content-encoding'], given.vary, rawPayload.length] as const;
        });
        return await Promise.all(asked);
    };
    const [none, stored, usual] = [await sizes(false), await sizes({ gzip: { level: 0 } }), await sizes({})];
    for (const [index, [encoding, vary, bytes]] of none.entries()) {
        t.strictSame([encoding, vary], [undefined, undefined]);
        const [inGzip = 0, compressed = 0] = [stored, usual].map((each) => each[index]?.[2]);
        t.ok(inGzip > bytes && compressed < bytes / 5, `${compressed}, ${bytes}, ${inGzip}`);
    }
    t.strictSame(
        [...stored, ...usual].map(([encoding, vary]) => [encoding, vary]),
        Array.from({ length: 4 }, () => ['gzip', 'accept-encoding']),
    );
});

t.test('breaks the connection when the store ends because of a failure of its own signal handling', async (t) => {
    const { store } = await probe(async function* (batch) {
        yield batch(1);
        await turn();
        throw Object.assign(new Error('aborted'), { name: 'AbortError' });
    });
    const running = await started(t, { store });
    const { error } = await received(await answer(request(running, '/workspaces/1/hosts')));

    t.match(error, { code: 'ECONNRESET' });
});

t.test('answers 503 when the store fails before the first batch', async (t) => {
    const connected = async (): Promise<number> => {
        throw new Error('no connection to db.internal:5432');
    };
    const { store } = await probe(async function* (batch) {
        yield batch(await connected());
    });
    const running = await started(t, { store });
    const message = await answer(request(running, '/workspaces/1/hosts'));
    const { body } = await received(message);

    t.equal(message.statusCode, 503);
    t.notMatch(body, /internal/);
    t.match(JSON.parse(body), { statusCode: 503, error: 'Service Unavailable' });
});

t.test('answers 503 when the store throws instead of rejecting', async (t) => {
    const { store } = await probe(async function* () {});
    const broken = (): never => {
        throw new Error('down');
    };
    const running = await started(t, { store: { ...store, workspaces: { list: broken, get: broken } } });

    for (const path of ['/workspaces', '/workspaces/1', '/workspaces/1/hosts']) {
        t.equal((await answer(request(running, path))).statusCode, 503, path);
    }
});

t.test('answers 503 when a single row or a parent cannot be read', async (t) => {
    const { store } = await probe(async function* () {});
    const broken = () => Promise.reject(new Error('down'));
    const running = await started(t, { store: { ...store, workspaces: { ...store.workspaces, get: broken } } });

    for (const path of ['/workspaces/1', '/workspaces/1/hosts']) {
        t.equal((await answer(request(running, path))).statusCode, 503, path);
    }
});

t.test('ends the reading when the client leaves in the middle', async (t) => {
    const probed = await probe(async function* (batch) {
        for (;;) {
            yield batch(500);
        }
    });
    const running = await started(t, { store: probed.store });
    const message = await answer(request(running, '/workspaces/1/hosts'));
    await once(message, 'data');
    t.equal(probed.open(), 1);
    message.destroy();
    await until(() => probed.open() === 0);
    t.pass('the reading has ended');
});

t.test('ends the reading when the client leaves while the store waits for its next batch', async (t) => {
    for (const before of [0, 1]) {
        const probed = await probe(async function* (batch, signal) {
            for (let given = 0; given < before; given += 1) {
                yield batch(1);
            }
            await once(signal as AbortSignal, 'abort');
        });
        const running = await started(t, { store: probed.store });
        const sent = request(running, '/workspaces/1/hosts').on('error', () => {});
        await until(() => probed.open() === 1 && probed.batches() === before);
        sent.destroy();
        await until(() => probed.open() === 0);
        t.pass(`the reading has ended after ${before} batches`);
    }
});

t.test('ends the counting when the client leaves meanwhile', async (t) => {
    const { store } = await probe(async function* () {});
    let [begun, ended] = [false, false];
    const hosts: Collection<Host> = {
        ...memoryInventory().hosts,
        async count(_parents, _where, { signal } = {}) {
            begun = true;
            await once(signal as AbortSignal, 'abort');
            ended = true;
            return 0;
        },
    };
    const running = await started(t, { store: { ...store, hosts } });
    const sent = request(running, '/workspaces/1/hosts?limit=1', { headers: { prefer: 'count=exact' } }).on('error', () => {});
    await until(() => begun);
    sent.destroy();
    await until(() => ended);
    t.pass('the counting has ended');
});

t.test('reads nothing for HEAD', async (t) => {
    const probed = await probe(async function* (batch) {
        for (;;) {
            yield batch(1);
        }
    });
    const running = await started(t, { store: probed.store });
    const message = await answer(request(running, '/workspaces/1/hosts', { method: 'HEAD' }));
    await received(message);

    t.equal(message.statusCode, 200);
    t.equal(message.headers['content-type'], 'application/json; charset=utf-8');
    t.equal(probed.batches(), 0);
});

t.test('lets other requests through while a source that never waits is read', async (t) => {
    let ended = false;
    const probed = await probe(async function* (batch) {
        while (!ended) {
            yield batch(500);
        }
    });
    const running = await started(t, { store: probed.store });
    const long = answer(request(running, '/workspaces/1/hosts')).then(async (message) => {
        message.resume();
        await once(message, 'end');
    });
    await until(() => probed.batches() > 2);
    const other = await answer(request(running, '/workspaces'));
    t.equal(other.statusCode, 200);
    t.equal(ended, false, 'the other request was answered before the long one ended');
    ended = true;
    other.resume();
    await long;
});

t.test('gives the plain array whatever the sizes of the batches', async (t) => {
    for (const sizes of [[], [0], [0, 1, 0], [1, 2, 0, 3], [1201]]) {
        const { store } = await probe(async function* (batch) {
            for (const size of sizes) {
                yield batch(size);
            }
        });
        const running = await started(t, { store });
        const { body } = await received(await answer(request(running, '/workspaces/1/hosts')));
        const rows = JSON.parse(body);

        t.equal(
            rows.length,
            sizes.reduce((sum, size) => sum + size, 0),
        );
        t.equal(body, JSON.stringify(rows));
    }
});

t.test('pauses the store while the client does not read', async (t) => {
    const probed = await probe(async function* (batch) {
        for (;;) {
            yield batch(500);
        }
    });
    const running = await started(t, { store: probed.store });
    const message = await answer(request(running, '/workspaces/1/hosts'));
    message.pause();
    let seen = -1;
    // Quiet while another request is answered means paused: an unpaused source goes on with every turn of the event loop.
    while (seen !== probed.batches()) {
        seen = probed.batches();
        await received(await answer(request(running, '/workspaces/1')));
    }
    t.ok(probed.open() === 1 && seen > 0);
    message.destroy();
    await until(() => probed.open() === 0);
});
