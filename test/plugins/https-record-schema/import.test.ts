import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import http from 'node:http';
import { setImmediate } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../../adapters/memory/records.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { RecordStore } from '../../../lib/records/index.ts';
import { allTold, answerTo, imported, linesOf, linesTold, posting, RECORDS, record, started } from './record-server.ts';

const good = linesOf([record()]);
const bad = linesOf([{ ...record(), port: '443' }]);

/** More than the buffers of a connection hold, in bytes. */
const LARGE = 16_777_216;

function manyLines(count: number): string {
    return linesOf(Array.from({ length: count }, (_, index) => record({ path: `/${index}` })));
}

t.test('stores the good lines of a batch and says what is wrong with the others', async (t) => {
    const records = memoryRecords();
    const server = await started(t, { records });

    t.same(await imported(server, `${good}${bad}\n${good}${linesOf([record({ port: 8443 })])}`), [
        { line: 2, byteOffset: good.length, ok: false, problems: [{ field: 'port', reason: 'must be a number' }] },
        {
            complete: true,
            ok: false,
            records: 4,
            good: 3,
            new: 2,
            bad: 1,
            blank: 1,
            bytes: 3 * good.length + bad.length + 2,
            unreported: 0,
        },
    ]);
    t.same(
        (await records.list({ limit: 10 })).map((stored) => stored.record),
        [record(), record({ port: 8443 })],
    );
});

t.test('says of every line what became of it when asked', async (t) => {
    const server = await started(t);
    const told = await imported(server, good + bad + good, '?results=all');

    t.match(told, [
        { line: 1, byteOffset: 0, ok: true, id: 1, new: true },
        { line: 2, byteOffset: good.length, ok: false, problems: [{ field: 'port' }] },
        { line: 3, ok: true, id: 1, new: false },
        { complete: true, good: 2, new: 1, bad: 1, unreported: 0 },
    ]);
    t.equal(told.length, 4);
});

t.test('says what the inventory took nothing of, and counts it', async (t) => {
    const inventory = memoryInventory();
    await inventory.updateWorkspace('default', { boundary: '198.51.100.0/24', limit_to_network: true });
    const server = await started(t, { records: memoryRecords({ inventory }), enrich: { workspace: 'default' } });
    const lines = linesOf([record(), record({ ip: '198.51.100.7' }), record({ port: 8443 })]);

    t.strictSame(
        (await imported(server, lines, '?results=all')).map(({ id, refused }) => [id, refused]),
        [
            [1, true],
            [2, undefined],
            [3, true],
            [undefined, 2],
        ],
    );
    t.notOk('refused' in ((await imported(server, linesOf([record({ ip: '198.51.100.7' })]))).at(-1) ?? {}));
});

t.test('describes so many bad lines and counts the others', async (t) => {
    const server = await started(t, { maxReported: 2 });

    t.match(await imported(server, bad.repeat(1200)), [{ line: 1 }, { line: 2 }, { bad: 1200, unreported: 1198 }]);
});

t.test('completes the answer to an empty batch', async (t) => {
    t.match(await imported(await started(t), ''), [{ complete: true, ok: true, records: 0, new: 0 }]);
});

t.test('reads gzip, called so or not', async (t) => {
    const server = await started(t);
    const packed = Buffer.concat([gzipSync(good), gzipSync(bad)]);

    t.match((await imported(server, packed)).at(-1), { complete: true, good: 1, bad: 1 });
    t.match((await imported(server, packed, '', { 'content-encoding': 'gzip' })).at(-1), { complete: true, good: 1, new: 0 });
});

t.test('refuses what it cannot read at all', async (t) => {
    const server = await started(t);
    for (const [body, query, headers, expected] of [
        [good, '', { 'content-encoding': 'br' }, { statusCode: 415, message: /Content-Encoding/ }],
        [good, '', { 'content-type': 'application/json' }, { statusCode: 415 }],
        [good, '?results=some', {}, { statusCode: 400, message: /^results must be one of/ }],
        [good, '?mend=everything', {}, { statusCode: 400, message: /^mend/ }],
    ] as const) {
        t.match(await imported(server, body, query, headers), [expected]);
    }
});

t.test('stops at a gzip bomb and at damaged gzip', async (t) => {
    const server = await started(t, { maxLineBytes: 1000 });
    const bomb = gzipSync(Buffer.concat([Buffer.from(good), Buffer.alloc(80_000_000, ' ')]), { level: 9 });
    for (const packed of [bomb, gzipSync(good).subarray(0, -9)]) {
        const told = await imported(server, packed);
        t.match(told.at(-2), { line: 2, ok: false, problems: [{ field: '', reason: /^is where reading ends/ }] });
        t.match(told.at(-1), { complete: true, ok: false, good: 1 });
    }
});

t.test('mends records when asked, and says so', async (t) => {
    const server = await started(t);
    const told = await imported(server, `${JSON.stringify({ ...record(), port: '443', vhost: null })}\n`, '?mend=import&results=all');

    t.match(told, [
        { line: 1, ok: true, id: 1, mends: ['port_string', 'vhost_null', 'path_missing'] },
        { complete: true, mended: 1, mends: { port_string: 1, subject_parts: 0 } },
    ]);
    t.match(JSON.parse((await server.inject(`${RECORDS}/1`)).payload), { record: record({ path: '/' }) });
});

t.test('imports 10,000 lines, also again', async (t) => {
    const server = await started(t);
    for (const added of [10_000, 0]) {
        const sent = posting(server, '?results=all');
        sent.end(manyLines(10_000));
        const told = await allTold(sent);

        t.match(told.at(-1), { complete: true, ok: true, records: 10_000, new: added, unreported: 0 });
        t.same(
            told.slice(0, -1).map(({ line, id }) => [line, id]),
            Array.from({ length: 10_000 }, (_, index) => [index + 1, index + 1]),
        );
    }
});

t.test('answers while the request is still being sent, and only for what is stored', async (t) => {
    const records = memoryRecords();
    const server = await started(t, { records });
    const sent = posting(server, '?results=all');
    sent.write(good);
    const told = linesTold(await answerTo(sent));

    t.match((await told.next()).value, { line: 1, id: 1 });
    t.equal((await records.list({ limit: 10 })).length, 1);
    sent.write(manyLines(1));
    t.match((await told.next()).value, { line: 2, id: 2 });
    sent.end();
    t.match((await told.next()).value, { complete: true, records: 2 });
    t.equal((await told.next()).done, true);
});

t.test('keeps what was stored when the connection dies in mid-stream', async (t) => {
    const records = memoryRecords();
    const server = await started(t, { records });
    const sent = posting(server, '?results=all');
    sent.write(`${manyLines(3)}{"data":`);
    const told = linesTold(await answerTo(sent));
    await told.next();
    sent.destroy();
    await t.rejects(async () => {
        for await (const _ of told) {
            // Until it is cut.
        }
    });

    t.equal((await records.list({ limit: 10 })).length, 3);
    t.match((await imported(server, manyLines(4))).at(-1), { complete: true, good: 4, new: 1 });
});

t.test('stops when the client is gone', async (t) => {
    let adds = 0;
    const gate = gateway();
    const records: RecordStore = {
        ...memoryRecords(),
        async add(batch) {
            adds += 1;
            await gate.open;
            return batch.map(() => ({ id: 1, isNew: true }));
        },
    };
    const server = await started(t, { records });
    const gone = new Promise((resolve) => server.listener.once('request', (_, response) => response.once('close', resolve)));
    const sent = posting(server).on('error', () => {});
    sent.end(gzipSync(good.repeat(50_000)));
    await until(() => adds === 1);
    sent.destroy();
    await gone;
    gate.release();
    // By the time that a later import is answered, the one that was given up would have stored its next batch.
    await imported(server, good);
    t.equal(adds, 2);
});

t.test('answers 503 when the store fails at once, and reads the rest of the request', async (t) => {
    const records: RecordStore = { ...memoryRecords(), add: () => Promise.reject(new ScanwireError('UNAVAILABLE', 'db.internal is away')) };
    const server = await started(t, { records });
    const sent = posting(server);
    const written = once(sent, 'finish');
    sent.end(Buffer.alloc(LARGE, good));
    const message = await answerTo(sent);
    const body = (await message.setEncoding('utf8').toArray()).join('');
    await written;

    t.match(JSON.parse(body), { statusCode: 503, message: /try again later/ });
    t.notMatch(body, /internal/);
});

t.test('reads the rest of what it does not want', async (t) => {
    const server = await started(t);
    const damaged = Buffer.concat([gzipSync(good), randomBytes(LARGE)]);
    for (const [query, body, answer] of [
        ['?mend=none', Buffer.alloc(LARGE, good), /"statusCode":400/],
        ['', damaged, /"complete":true,.*"good":1,/],
    ] as const) {
        const sent = posting(server, query);
        const written = once(sent, 'finish');
        sent.end(body);
        const message = await answerTo(sent);
        t.match((await message.setEncoding('utf8').toArray()).join(''), answer);
        await written;
    }
});

t.test('ends with an error line and a broken connection when the store fails later', async (t) => {
    const honest = memoryRecords();
    let adds = 0;
    const records: RecordStore = {
        ...honest,
        add: (batch) => (adds++ === 0 ? honest.add(batch) : Promise.reject(new Error('db.internal is away'))),
    };
    const server = await started(t, { records });
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => logged.push(error));
    const sent = posting(server, '?results=all').on('error', () => {});
    sent.write(good);
    const told = linesTold(await answerTo(sent));
    t.match((await told.next()).value, { line: 1, id: 1 });
    sent.write(manyLines(1));

    t.same((await told.next()).value, {
        complete: false,
        statusCode: 503,
        error: 'Service Unavailable',
        message: 'The records cannot be stored or read now; try again later',
    });
    await t.rejects(told.next(), { code: 'ECONNRESET' });
    t.match(logged, [{ message: 'db.internal is away' }]);
});

t.test('gives everything to a client that reads slowly', async (t) => {
    const server = await started(t);
    const sent = posting(server, '?results=all');
    sent.end(linesOf(Array.from({ length: 40_000 }, () => ({ note: 'not a record' }))));
    const message = await answerTo(sent);
    let lines = 0;
    for await (const chunk of message) {
        lines += (chunk as Buffer).filter((byte) => byte === 0x0a).length;
        await setImmediate();
    }

    t.equal(lines, 40_001);
});

t.test('keeps the connection of a batch that came at once', async (t) => {
    const server = await started(t);
    const agent = new http.Agent({ keepAlive: true, maxSockets: 1 });
    t.teardown(() => agent.destroy());
    const ports: unknown[] = [];
    for (let count = 0; count < 3; count += 1) {
        const sent = posting(server, '', { agent });
        sent.on('socket', (socket) => socket.once('connect', () => ports.push(socket.localPort)));
        sent.end(manyLines(10));
        t.match(await allTold(sent), [{ complete: true, good: 10 }]);
    }

    t.equal(ports.length, 1);
});

t.test('asks for the body of a client that expects to be asked', async (t) => {
    const server = await started(t);
    const sent = posting(server, '', { headers: { expect: '100-continue' } });
    sent.flushHeaders();
    await once(sent, 'continue');
    sent.end(good);

    t.match(await allTold(sent), [{ complete: true, new: 1 }]);
});

t.test('streams the results of a check to those who accept JSON lines', async (t) => {
    const server = await started(t);
    const check = async (query: string) => {
        const headers = { 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' };
        const url = `/https-record-schema/check${query}`;
        const { payload } = await server.inject({ method: 'POST', url, headers, payload: good + bad });
        return payload
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line));
    };

    const summary = { complete: true, ok: false, records: 2, good: 1, bad: 1, blank: 0, bytes: good.length + bad.length, unreported: 0 };
    const badLine = { line: 2, byteOffset: good.length, ok: false, problems: [{ field: 'port', reason: 'must be a number' }] };
    t.same(await check(''), [badLine, summary]);
    t.same(await check('?results=all'), [{ line: 1, byteOffset: 0, ok: true }, badLine, summary]);
});

t.test('imports a large stream in constant memory', async (t) => {
    const records: RecordStore = { ...memoryRecords(), add: async (batch) => batch.map(() => ({ id: 1, isNew: true })) };
    const server = await started(t, { records });
    const line = linesOf([record({ data: Buffer.alloc(30_000, 'x').toString('base64') })]);
    const sent = posting(server);
    const before = process.memoryUsage();
    let most = 0;
    for (let count = 0; count < 4_000; count += 1) {
        if (!sent.write(line)) {
            await once(sent, 'drain');
        }

        most = Math.max(most, process.memoryUsage().rss - before.rss);
    }

    sent.end();
    t.match(await allTold(sent), [{ complete: true, good: 4_000, bytes: 4_000 * line.length }]);
    t.ok(most < 120 * 1_048_576, `${most} bytes more for ${4_000 * line.length}`);
});

function gateway(): { readonly open: Promise<void>; release(): void } {
    let release = (): void => {};
    const open = new Promise<void>((resolve) => {
        release = resolve;
    });
    return { open, release: () => release() };
}
