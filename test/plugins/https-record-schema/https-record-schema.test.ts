import { randomBytes } from 'node:crypto';
import { request } from 'node:http';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { createGzip, gzipSync } from 'node:zlib';
import * as Boom from '@hapi/boom';
import Hapi, { type Server } from '@hapi/hapi';
import { Ajv2020 } from 'ajv/dist/2020.js';
import t, { type Test } from 'tap';
import { memoryRecords } from '../../../adapters/memory/index.ts';
import { type HttpsRecordSchemaOptions, plugin } from '../../../plugins/https-record-schema/index.ts';

const record = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };
const good = `${JSON.stringify(record)}\n`;
const bad = `${JSON.stringify({ ...record, port: '443' })}\n`;
const ndjson = { 'content-type': 'application/x-ndjson' };

async function served(options: HttpsRecordSchemaOptions = {}): Promise<Server> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0 });
    await server.register({ plugin, options });
    return server;
}

function post(server: Server, payload: string | Buffer, headers: Record<string, string> = ndjson) {
    return server.inject({ method: 'POST', url: '/https-record-schema/check', headers, payload });
}

t.test('serves the JSON Schema', async (t) => {
    const server = await served();
    const { statusCode, headers, payload } = await server.inject('/https-record-schema');
    t.equal(statusCode, 200);
    t.equal(headers['content-type'], 'application/schema+json');
    const accepts = new Ajv2020({ strict: true }).compile(JSON.parse(payload));
    t.equal(accepts(record), true);
    t.equal(accepts({ ...record, seen: '2026-11-21' }), false);
});

t.test('checks one record for the host', async (t) => {
    const server = await served();
    const { validate } = server.plugins['https-record-schema'];
    t.same(validate(record), { ok: true, record });
    t.same(validate({ ...record, port: 0 }), { ok: false, problems: [{ field: 'port', reason: 'must be greater than or equal to 1' }] });
});

t.test('says what is wrong in which line of a batch', async (t) => {
    const server = await served();
    const { statusCode, result } = await post(server, good + bad + good);
    t.equal(statusCode, 200);
    t.same(result, {
        ok: false,
        records: 3,
        good: 2,
        bad: 1,
        blank: 0,
        bytes: 2 * good.length + bad.length,
        lines: [{ line: 2, byteOffset: good.length, problems: [{ field: 'port', reason: 'must be a number' }] }],
        unreported: 0,
    });
});

t.test('takes every type of JSON lines, with parameters, and no other', async (t) => {
    const server = await served();
    for (const type of ['application/x-ndjson', 'application/jsonl', 'text/plain; charset=utf-8', 'application/octet-stream']) {
        t.match(await post(server, good, { 'content-type': type }), { statusCode: 200, result: { ok: true, good: 1 } }, type);
    }

    for (const type of ['application/json', 'multipart/form-data; boundary=x', 'text/html']) {
        t.match(
            await post(server, good, { 'content-type': type }),
            { statusCode: 415, result: { message: /^Content-Type must be one of application\/x-ndjson, / } },
            type,
        );
    }
});

t.test('reads gzip, also of several members', async (t) => {
    const server = await served();
    const headers = { ...ndjson, 'content-encoding': 'GZIP' };
    const payload = Buffer.concat([gzipSync(good), gzipSync(bad)]);
    t.match(await post(server, payload, headers), { statusCode: 200, result: { good: 1, bad: 1 } });
});

t.test('knows gzip by its first bytes, whatever the client calls it, and refuses other encodings', async (t) => {
    const server = await served();
    for (const encoding of ['gzip', 'x-gzip', 'identity', '']) {
        for (const payload of [good, gzipSync(good)]) {
            const answer = await post(server, payload, { ...ndjson, 'content-encoding': encoding });
            t.match(answer, { statusCode: 200, result: { ok: true, good: 1 } }, encoding);
        }
    }

    t.match(await post(server, good, { ...ndjson, 'content-encoding': 'br' }), {
        statusCode: 415,
        result: { message: /Content-Encoding/ },
    });
});

t.test('stops at a gzip bomb', async (t) => {
    const server = await served({ maxBytes: 1_000_000, maxDecodedBytes: 1_000_000 });
    const bomb = gzipSync(Buffer.alloc(2_000_000, ' '));
    t.ok(bomb.length < 2_048);
    for (const headers of [{ ...ndjson, 'content-encoding': 'gzip' }, ndjson]) {
        t.match(await post(server, bomb, headers), {
            statusCode: 413,
            result: { message: 'The batch is larger than 1000000 bytes after decompression: send it in parts' },
        });
    }
});

t.test('describes so many bad lines and counts the others', async (t) => {
    const server = await served({ maxReported: 2 });
    const { result } = await post(server, bad.repeat(5));
    t.match(result, { bad: 5, unreported: 3 });
    t.equal((result as { lines: unknown[] }).lines.length, 2);
});

t.test('describes so many bad lines of any kind, and where reading ends besides', async (t) => {
    const server = await served({ maxReported: 2, maxLineBytes: 1000 });
    const kinds: Readonly<Record<string, string | Buffer>> = {
        'too long': 'x'.repeat(1001),
        'not UTF-8': Buffer.alloc(50, 0xff),
        'not JSON': 'x'.repeat(50),
        'no object': `"${'x'.repeat(50)}"`,
        'a repeated key': `${good.trim().slice(0, -1)},"port":443}`,
    };
    for (const [kind, line] of Object.entries(kinds)) {
        const lines = Buffer.concat(Array.from({ length: 5 }, () => [Buffer.from(line as string), Buffer.from('\n')]).flat());
        const { result } = await post(server, lines);
        t.match(result, { bad: 5, unreported: 3, lines: [{ line: 1 }, { line: 2 }] }, kind);
        t.equal((result as { lines: unknown[] }).lines.length, 2, kind);

        const cut = await post(server, gzipSync(lines).subarray(0, -4));
        const ends = [{ field: '', reason: /^is where reading ends/ }];
        t.match(cut.result, { bad: 6, unreported: 3, lines: [{ line: 1 }, { line: 2 }, { line: 6, problems: ends }] }, kind);
    }
});

t.test('skips a line that is too long', async (t) => {
    const server = await served({ maxLineBytes: 1000 });
    const { result } = await post(server, `${'x'.repeat(1001)}\n${good}`);
    t.match(result, { good: 1, bad: 1, lines: [{ line: 1, problems: [{ field: '', reason: 'is longer than 1000 bytes' }] }] });
});

/** Sends a body in chunks, without a length, and resolves with the answer. */
async function upload(
    t: Test,
    server: Server,
    body: AsyncIterable<Buffer>,
    headers: object = ndjson,
): Promise<{ status: number; body: string }> {
    await server.start();
    t.teardown(() => server.stop());
    return new Promise((resolve, reject) => {
        const url = `${server.info.uri}/https-record-schema/check`;
        const sending = request(url, { method: 'POST', headers: { ...headers } }, (response) => {
            text(response)
                .then((body) => resolve({ status: response.statusCode ?? 0, body }), reject)
                .finally(() => sending.destroy());
        });
        sending.on('error', reject);
        pipeline(body, sending).catch(() => {
            // The server may answer before it has everything.
        });
    });
}

t.test('answers 413 to a batch without a length that grows too large', async (t) => {
    const server = await served({ maxBytes: 200_000 });
    async function* endless(): AsyncGenerator<Buffer> {
        for (;;) {
            yield Buffer.from(good.repeat(500));
        }
    }

    const { status, body } = await upload(t, server, endless());
    t.equal(status, 413);
    t.match(body, 'larger than 200000 bytes');
});

t.test('answers 413 at once to a length that is too large', async (t) => {
    const server = await served({ maxBytes: 1000 });
    t.equal((await post(server, good.repeat(20))).statusCode, 413);
});

t.test('checks a large batch in constant memory', async (t) => {
    const server = await served();
    const line = `${JSON.stringify({ ...record, data: Buffer.concat([randomBytes(3_000), Buffer.alloc(27_000)]).toString('base64') })}\n`;
    const lines = 12_000;
    const gzip = createGzip({ level: 1 });
    let most = 0;
    const before = process.memoryUsage();
    void (async () => {
        for (let sent = 0; sent < lines; sent += 1) {
            if (!gzip.write(line)) {
                await new Promise((drained) => gzip.once('drain', drained));
            }

            const { arrayBuffers } = process.memoryUsage();
            most = Math.max(most, arrayBuffers - before.arrayBuffers);
        }

        gzip.end();
    })();
    const { status, body } = await upload(t, server, gzip, { ...ndjson, 'content-encoding': 'gzip' });
    t.equal(status, 200);
    t.match(JSON.parse(body), { ok: true, good: lines, bytes: lines * line.length });
    // Newer engines collect buffers only when there are 64 MiB of them.
    t.ok(most < 96 * 1_048_576, `${most} bytes more for ${lines * line.length}`);
});

t.test('stops working on a batch when the client is gone', async (t) => {
    const server = await served();
    const failed = new Promise<unknown>((resolve) => {
        server.events.on({ name: 'request', channels: 'internal', filter: 'handler' }, (_, { error }) => resolve(error));
    });
    server.ext('onPreHandler', ({ payload }, h) => {
        (payload as Readable).once('readable', () => sending.destroy());
        return h.continue;
    });
    await server.start();
    t.teardown(() => server.stop());
    // A minute of work in a few kilobytes.
    const batch = gzipSync('{}\n'.repeat(2_000_000));
    const headers = { ...ndjson, 'content-encoding': 'gzip' };
    const sending = request(`${server.info.uri}/https-record-schema/check`, { method: 'POST', headers });
    sending.on('error', () => {});
    sending.end(batch);
    t.match(await failed, { message: 'The batch was not received to its end' });
});

async function guarded(options: HttpsRecordSchemaOptions): Promise<Server> {
    const server = Hapi.server();
    server.auth.scheme('never', () => ({
        authenticate() {
            throw Boom.unauthorized();
        },
    }));
    server.auth.strategy('strict', 'never');
    server.auth.default('strict');
    await server.register({ plugin, options });
    return server;
}

t.test("uses the server's default authentication unless told otherwise", async (t) => {
    for (const [options, status] of [
        [{}, 401],
        [{ auth: 'strict' }, 401],
        [{ auth: false }, 200],
    ] as const) {
        const server = await guarded(options);
        t.equal((await server.inject('/https-record-schema')).statusCode, status);
        t.equal((await post(server, good)).statusCode, status);
    }
});

t.test('moves to another path', async (t) => {
    const server = await served({ path: '/schemas/record' });
    t.equal((await server.inject('/schemas/record')).statusCode, 200);
    t.equal((await server.inject({ method: 'POST', url: '/schemas/record/check', headers: ndjson, payload: good })).statusCode, 200);
    t.equal((await server.inject('/https-record-schema')).statusCode, 404);
});

t.test('refuses options that cannot work', async (t) => {
    for (const [options, field] of [
        [{ path: 'records' }, 'path'],
        [{ path: '/{id}' }, 'path'],
        [{ maxBytes: 0 }, 'maxBytes'],
        [{ auth: true }, 'auth'],
        [{ maxLines: 1 }, 'maxLines'],
    ] as const) {
        await t.rejects(served(options as HttpsRecordSchemaOptions), { code: 'MISCONFIGURED', field });
    }
});

t.test('answers as to a wrong key while the licence is not valid, on every route', async (t) => {
    let valid: boolean | Error = false;
    const license = {
        async valid() {
            if (valid instanceof Error) {
                throw valid;
            }

            return valid;
        },
    };
    const server = Hapi.server({ debug: false });
    await server.register({ plugin, options: { license, auth: false, records: memoryRecords() } });
    const routes = [
        ['GET', ''],
        ['POST', '/check'],
        ['GET', '/records'],
        ['GET', '/records/1'],
        ['POST', '/records'],
    ] as const;
    for (const [answer, statuses] of [
        [false, [403]],
        [new Error('down'), [503]],
        [true, [200, 404]],
    ] as const) {
        valid = answer;
        for (const [method, path] of routes) {
            const payload = method === 'POST' ? { headers: ndjson, payload: good } : {};
            const { statusCode } = await server.inject({ method, url: `/https-record-schema${path}`, ...payload });
            t.ok((statuses as readonly number[]).includes(statusCode), `${method} ${path} ${String(answer)}: ${statusCode}`);
        }
    }
});
