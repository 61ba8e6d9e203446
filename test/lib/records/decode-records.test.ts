import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import {
    type DecodedRecord,
    decodeRecord,
    type HttpsRecord,
    parseResponse,
    type ReadDecodedRecordsOptions,
    type RecordLine,
    readDecodedRecords,
    readRecords,
} from '../../../lib/records/index.ts';
import { collect } from '../../support/collect.ts';
import { arbitraryMutant } from './arbitrary-record.ts';

const records = readFileSync('fixtures/records/https.jsonl', 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as HttpsRecord);
const minimal = { data: '', host: 'www.example.com', ip: '192.0.2.7', port: 443 };

t.test('decodes captures of a real server', (t) => {
    const decoded = records.map((record) => decodeRecord(record));
    t.match(decoded, [
        {
            host: 'web.example.test',
            ip: '127.0.0.2',
            port: 443,
            path: '/',
            vhost: 'web.example.test',
            subject: { OU: 'Web', CN: 'web.example.test' },
            response: { http: true, version: '1.1', status: 200, reason: 'OK', title: 'Welcome', truncated: false, problems: [] },
        },
        { port: 8443, path: '/plain', response: { status: 200, title: null, truncated: false, problems: [] } },
        { host: '127.0.0.2', vhost: null, response: { status: 200, title: 'Welcome', truncated: false, problems: [] } },
    ]);
    t.same(
        decoded.map(({ response }) => (response.http ? response.body.toString() : null)),
        [
            '<!doctype html><title>Welcome</title><h1>Welcome</h1>',
            'plain text, plain text, plain text, plain text',
            '<!doctype html><title>Welcome</title><h1>Welcome</h1>',
        ],
    );
    t.end();
});

t.test('says null for what a record leaves out', (t) => {
    t.strictSame(decodeRecord(minimal), {
        host: 'www.example.com',
        ip: '192.0.2.7',
        port: 443,
        path: null,
        vhost: null,
        subject: null,
        response: { http: false, bytes: Buffer.alloc(0) },
    });
    t.end();
});

t.test('hands its limits on', (t) => {
    const data = Buffer.from('HTTP/1.1 200 OK\r\n\r\nabcdef').toString('base64');
    const { response } = decodeRecord({ ...minimal, data }, { maxBodyBytes: 3 });
    t.equal(response.http && response.body.toString(), 'abc');
    t.end();
});

t.test('refuses a limit that no body can keep', (t) => {
    const data = Buffer.from('HTTP/1.1 200 OK\r\n\r\nabcdef').toString('base64');
    for (const maxBodyBytes of [Infinity, 2 ** 53, 268_435_457, 0, -1, Number.NaN, '5' as unknown as number]) {
        const error = {
            code: 'MISCONFIGURED',
            field: 'maxBodyBytes',
            message: 'Response limits: maxBodyBytes must be a number from 1 to 268435456',
        };
        t.throws(() => parseResponse(Buffer.from(data, 'base64'), { maxBodyBytes }), error, `${maxBodyBytes}`);
        t.throws(() => parseResponse(Buffer.from('SSH-2.0-x'), { maxBodyBytes }), error, `${maxBodyBytes}`);
        t.throws(() => decodeRecord({ ...minimal, data }, { maxBodyBytes }), error, `${maxBodyBytes}`);
        t.throws(() => readDecodedRecords(source(Buffer.alloc(0)), { maxBodyBytes }), error, `${maxBodyBytes}`);
    }

    for (const maxBodyBytes of [1, 268_435_456]) {
        const head = 'HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n';
        const response = parseResponse(Buffer.concat([Buffer.from(head), gzipSync('a')]), { maxBodyBytes });
        t.match(response, { http: true, problems: [] }, `${maxBodyBytes}`);
        t.equal(response.http && response.body.toString(), 'a');
    }
    t.end();
});

const servers = readFileSync('fixtures/records/servers.jsonl');
const oldStyle = readFileSync('fixtures/records/old-style.jsonl');

/** A line whose response unpacks to so many bytes. */
function bomb(bytes: number): string {
    const head = `HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Encoding: gzip\r\n\r\n`;
    const data = Buffer.concat([Buffer.from(head), gzipSync(Buffer.alloc(bytes))]).toString('base64');
    return JSON.stringify({ ...minimal, data });
}

async function* source(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
    yield bytes;
}

async function batchesOf(bytes: Uint8Array, options: ReadDecodedRecordsOptions = {}): Promise<(readonly RecordLine<DecodedRecord>[])[]> {
    return await collect(readDecodedRecords(source(bytes), options).batches());
}

/** What comes of reading first and decoding then. */
async function oneAfterTheOther(bytes: Uint8Array, options: ReadDecodedRecordsOptions = {}): Promise<RecordLine<DecodedRecord>[]> {
    const lines = await collect(readRecords(source(bytes), options));
    return lines.map((line) => (line.ok ? { ...line, record: decodeRecord(line.record, options) } : line));
}

t.test('gives what decodeRecord makes of what readRecords gives', async (t) => {
    const bad = Buffer.from('{"data":"AAA","host":"a"}\n\n{\n');
    const escaped = Buffer.from('{"d\\u0061ta":"SFRUUA=\\u003d","host":"a","ip":"::1","port":1}\n');
    const files: [Buffer, ReadDecodedRecordsOptions?][] = [
        [servers],
        [gzipSync(servers)],
        [Buffer.concat([bad, servers, escaped, bad])],
        [servers, { maxBodyBytes: 100 }],
        [servers, { maxLineBytes: 2000 }],
        [oldStyle, { mend: 'import' }],
        [oldStyle],
        [gzipSync(servers).subarray(0, -100)],
    ];
    for (const [bytes, options] of files) {
        t.strictSame((await batchesOf(bytes, options)).flat(), await oneAfterTheOther(bytes, options));
    }
});

t.test('does so for whatever there may be in a line', async (t) => {
    await fc.assert(
        fc.asyncProperty(fc.array(arbitraryMutant), async (values) => {
            const bytes = Buffer.from(values.map((value) => `${JSON.stringify(value)}\n`).join(''));
            t.strictSame((await batchesOf(bytes)).flat(), await oneAfterTheOther(bytes));
        }),
    );
});

t.test('takes for base64 what readRecords does', async (t) => {
    const character = fc.constantFrom(...'AAAAQz09+/=-_ \\é');
    await fc.assert(
        fc.asyncProperty(fc.string({ unit: character, maxLength: 12 }), async (data) => {
            const bytes = Buffer.from(`${JSON.stringify({ ...minimal, data })}\n`);
            t.strictSame((await batchesOf(bytes)).flat(), await oneAfterTheOther(bytes));
        }),
        { numRuns: 2000 },
    );
});

t.test('counts as readRecords does, and gives the lines one by one', async (t) => {
    const lines = readDecodedRecords(source(oldStyle), { mend: 'import' });
    const expected = readRecords(source(oldStyle), { mend: 'import' });
    t.strictSame(await collect(lines), await oneAfterTheOther(oldStyle, { mend: 'import' }));
    await collect(expected);
    t.strictSame(lines.totals, expected.totals);
});

t.test('holds few responses that expand', async (t) => {
    const batches = await batchesOf(Buffer.from(`${bomb(1_000_000)}\n`.repeat(20)));
    t.equal(batches.flat().length, 20);
    t.ok(
        batches.every((batch) => batch.length <= 2),
        batches.map(({ length }) => length).join(' '),
    );
});

t.test('lets others have a turn between responses', async (t) => {
    let turns = 0;
    const counting = setInterval(() => {
        turns += 1;
    }, 1);
    await batchesOf(Buffer.from(`${bomb(4_000_000)}\n`.repeat(20)));
    clearInterval(counting);
    t.ok(turns > 5, `${turns} turns`);
});

t.test('refuses a mend profile that there is not', (t) => {
    t.throws(() => readDecodedRecords(source(servers), { mend: 'nope' as 'import' }), { code: 'MISCONFIGURED' });
    t.end();
});
