import { Buffer } from 'node:buffer';
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { writeFile, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { setImmediate } from 'node:timers/promises';
import { constants, crc32, gzipSync, inflateRawSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import {
    checkRecord,
    type ReadRecordsOptions,
    type RecordLine,
    type RecordTotals,
    readRecords,
    recordSource,
    writeRecords,
} from '../../../lib/records/index.ts';
import { collect } from '../../support/collect.ts';
import { arbitraryMutant } from './arbitrary-record.ts';

const record = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };
const good = JSON.stringify(record);

async function* chunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

interface Read {
    readonly lines: RecordLine[];
    readonly totals: RecordTotals;
}

async function read(text: string | Uint8Array, size = 65_536, options: ReadRecordsOptions = {}): Promise<Read> {
    const checked = readRecords(chunks(Buffer.from(text as string), size), options);
    const lines: RecordLine[] = [];
    for await (const line of checked) {
        lines.push(line);
    }

    return { lines, totals: checked.totals };
}

/** `line@offset reason; reason` of the bad lines. */
function reasons({ lines }: Read): string[] {
    return lines.flatMap((line) =>
        line.ok
            ? []
            : [`${line.line}@${line.byteOffset} ${line.problems.map(({ field, reason }) => `${field} ${reason}`.trim()).join('; ')}`],
    );
}

t.test('reads records, with number and place of each line', async (t) => {
    const result = await read(`${good}\n${good}\n`);
    t.same(result.lines, [
        { line: 1, byteOffset: 0, ok: true, record, mends: [] },
        { line: 2, byteOffset: good.length + 1, ok: true, record, mends: [] },
    ]);
    t.same(result.totals, { records: 2, good: 2, bad: 0, blank: 0, bytes: 2 * good.length + 2 });
});

t.test('takes line endings as they come', async (t) => {
    for (const text of [`${good}\n${good}`, `${good}\r\n${good}\r\n`, `\uFEFF${good}\n${good}\n`, `\n \t\r\n${good}\n\n${good}\n\n`]) {
        const { totals } = await read(text);
        t.match(totals, { good: 2, bad: 0 }, JSON.stringify(text.slice(0, 3)));
    }
});

t.test('reads nothing from an empty file', async (t) => {
    t.same((await read('')).totals, { records: 0, good: 0, bad: 0, blank: 0, bytes: 0 });
    t.same((await read('\uFEFF')).totals, { records: 0, good: 0, bad: 0, blank: 1, bytes: 3 });
    t.same((await read('\n\r\n')).totals, { records: 0, good: 0, bad: 0, blank: 2, bytes: 3 });
});

t.test('reports each bad line with its reason and goes on', async (t) => {
    const bad = [
        '{"data":"hunter2',
        '[1]',
        'null',
        good.replace('443', '"443"'),
        good.replace('}', ',"port":80,"subject":{"CN":"a","C\\u004e":"b"}}'),
        `\uFEFF${good}`,
        'hunter2',
    ];
    const bytes = Buffer.concat([Buffer.from(`${bad.join('\n')}\n`), Buffer.from([0x22, 0xff, 0xfe, 0x22, 0x0a]), Buffer.from(good)]);
    const result = await read(bytes);
    const offsets = [...bad, ''].map((_, index) => Buffer.byteLength(bad.slice(0, index).join('\n')) + (index > 0 ? 1 : 0));
    t.same(reasons(result), [
        `1@${offsets[0]} is not valid JSON`,
        `2@${offsets[1]} must be an object`,
        `3@${offsets[2]} must be an object`,
        `4@${offsets[3]} port must be a number`,
        `5@${offsets[4]} port appears more than once; subject.CN appears more than once`,
        `6@${offsets[5]} is not valid JSON`,
        `7@${offsets[6]} is not valid JSON`,
        `8@${offsets[7]} is not valid UTF-8`,
    ]);
    t.match(result.totals, { good: 1, bad: 8, bytes: bytes.length });
    t.notMatch(JSON.stringify(result.lines.slice(0, 8)), 'hunter2');
});

t.test('finds a repeated key however much room the rest leaves', async (t) => {
    const spared = good.replace('443', '1e4');
    for (const [line, key] of [
        [good.replace('{', '{"ip":"",'), 'ip'],
        [spared.replace('{', '{"ip":0,'), 'ip'],
        [spared.replace('}', ',"subject":{}}').replace('{', '{"subject":{},'), 'subject'],
        [good.replace('}', ',"subject":{"CN":"","CN":""}}'), 'subject.CN'],
        [good.replace(',"port"', ' , "port":1, "port"'), 'port'],
    ] as const) {
        t.same(reasons(await read(line)), [`1@0 ${key} appears more than once`], line);
    }

    for (const line of [spared, good.replace('443', '443.0'), good.replace('}', ',"subject":{}}'), good.replaceAll(',', ', ')]) {
        t.same(reasons(await read(line)), [], line);
    }
});

t.test('hands on the lines in batches too', async (t) => {
    const text = `${good}\n{}\n`.repeat(3_000);
    for (const bytes of [Buffer.from(text), gzipSync(text), gzipSync(text).subarray(0, -6)]) {
        const reading = readRecords(chunks(bytes, 65_536));
        const lines: RecordLine[] = [];
        for await (const batch of reading.batches()) {
            lines.push(...batch);
        }

        t.same({ lines, totals: reading.totals }, await read(bytes));
    }
});

t.test('skips a line that is too long, wherever it is cut', async (t) => {
    const maxLineBytes = good.length;
    const long = `${good} `;
    const text = `${good}\r\n${long}\n${'x'.repeat(300)}\n${good}\r\n${long}`;
    for (const size of [1, 2, 7, 64, 1_000]) {
        const result = await read(text, size, { maxLineBytes });
        t.same(
            result.lines.map(({ line, byteOffset, ok }) => [line, byteOffset, ok]),
            [
                [1, 0, true],
                [2, good.length + 2, false],
                [3, 2 * good.length + 4, false],
                [4, 2 * good.length + 305, true],
                [5, 3 * good.length + 307, false],
            ],
            `chunks of ${size}`,
        );
        t.same(reasons(result)[0], `2@${good.length + 2} is longer than ${maxLineBytes} bytes`);
    }
});

t.test('says the same however the file is cut into chunks', async (t) => {
    const line = fc.oneof(
        arbitraryMutant.map((mutant) => JSON.stringify(mutant)),
        fc.constantFrom('', ' ', '{', `${'y'.repeat(500)}`, good),
    );
    const file = fc.tuple(
        fc.boolean(),
        fc.array(fc.tuple(line, fc.constantFrom('\n', '\r\n')), { maxLength: 6 }),
        fc.integer({ min: 1, max: 50 }),
    );
    await fc.assert(
        fc.asyncProperty(file, async ([mark, lines, size]) => {
            const text = (mark ? '\uFEFF' : '') + lines.map((parts) => parts.join('')).join('');
            const [cut, whole] = [await read(text, size, { maxLineBytes: 400 }), await read(text, 1 << 20, { maxLineBytes: 400 })];
            t.same(cut, whole);
        }),
        { numRuns: 200 },
    );
});

t.test('holds no more than a line of an endless one', async (t) => {
    const chunk = Buffer.alloc(65_536, 'x');
    let sent = 0;
    let most = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
        while (sent < 3_000) {
            sent += 1;
            most = Math.max(most, process.memoryUsage().arrayBuffers);
            yield chunk;
        }
    }

    const before = process.memoryUsage().arrayBuffers;
    const checked = readRecords(endless());
    for await (const line of checked) {
        t.equal(line.ok, false);
    }

    t.equal(checked.totals.bytes, 3_000 * 65_536);
    t.ok(most - before < 8 * 1_048_576, `${most - before} bytes more`);
});

t.test('takes deep nesting and a storm of quotes in its stride', async (t) => {
    const depth = 100_000;
    const deep = good.replace('443', `${'['.repeat(depth)}${']'.repeat(depth)}`);
    const quotes = good.replace('}', `,"vhost":${JSON.stringify('\\"'.repeat(100_000))}}`);
    const result = await read(`${deep}\n${quotes}\n`);
    t.same(reasons(result), ['1@0 port must be a number']);
    t.equal(result.totals.good, 1);
});

t.test('ends with the error of its source', async (t) => {
    async function* failing(): AsyncGenerator<Uint8Array> {
        yield Buffer.from(`${good}\n${good}`);
        throw new Error('source is gone');
    }

    const seen: number[] = [];
    await t.rejects(async () => {
        for await (const { line } of readRecords(failing())) {
            seen.push(line);
        }
    }, /source is gone/);
    t.same(seen, [1]);
});

t.test('lets others have a turn between lines', async (t) => {
    let turns = 0;
    const counting = setInterval(() => {
        turns += 1;
    }, 1);
    const { totals } = await read('{}\n'.repeat(20_000));
    clearInterval(counting);
    t.equal(totals.bad, 20_000);
    t.ok(turns > 1, `${turns} turns`);
});

t.test('mends what was asked for, counts each kind, and leaves the rest bad', async (t) => {
    const lines = [
        good,
        good.replace('443', '"443"'),
        good.replace('}', ',"path":"/x","vhost":null}'),
        good.replace('}', ',"path":"/x","subject":{"CN":"a","O":"b","C":"c"}}'),
        good.replace('443', '"44300000"'),
        good.replace('}', ',"path":"/x","port":443}'),
        good.replace('}', ',"path":"/x"}'),
    ];
    const result = await read(lines.join('\n'), 65_536, { mend: 'import' });
    t.same(result.totals, {
        records: 7,
        good: 5,
        bad: 2,
        blank: 0,
        bytes: lines.join('\n').length,
        mended: 4,
        mends: { port_string: 1, vhost_null: 1, path_missing: 2, subject_parts: 1 },
    });
    t.same(
        result.lines.map((line) => (line.ok ? line.mends : line.problems.map(({ field }) => field))),
        [['path_missing'], ['port_string', 'path_missing'], ['vhost_null'], ['subject_parts'], ['port'], ['port'], []],
    );
    t.ok(result.lines.every((line) => !line.ok || checkRecord(line.record).ok));
});

t.test('takes no record for good that is too long once it is mended', async (t) => {
    const lines = [
        [good, ',"path":"/"'.length],
        [good.replace('443', '"443"'), ',"path":"/"'.length - 2],
        [good.replace('443', '1e4'), ',"path":"/"'.length + 2],
        [good.replace('}', ',"vhost":null}'), 0],
    ] as const;
    for (const [line, growth] of lines) {
        for (let room = 0; room <= 14; room += 1) {
            const maxLineBytes = line.length + room;
            const result = await read(line, 65_536, { mend: 'import', maxLineBytes });
            t.same(reasons(result), room < growth ? [`1@0 is longer than ${maxLineBytes} bytes once it is mended`] : [], `${line} ${room}`);
            t.same(reasons(await read(good, 65_536, { maxLineBytes: good.length })), [], 'nothing to mend');

            const mended = result.lines.flatMap((read) => (read.ok ? [read.record] : []));
            const written = Buffer.concat(await collect(writeRecords(mended)));
            t.same(reasons(await read(written, 65_536, { maxLineBytes })), [], 'passes its own check');
        }
    }

    const undescribed = await read(good, 65_536, { mend: 'import', maxLineBytes: good.length, maxDescribed: 0 });
    t.match(undescribed.lines, [{ ok: false, problems: [] }]);
});

t.test('finds the data wherever it is in the line', async (t) => {
    const { data, ...rest } = { ...record, path: '/' };
    const texts = [
        JSON.stringify({ ...rest, data }),
        JSON.stringify({ ...rest, vhost: '"data":"AAAA"', data }),
        JSON.stringify({ ...rest, vhost: 'ü€😀', data }),
        JSON.stringify({ ...rest, data }, null, ' ').replaceAll('\n', '\t'),
        JSON.stringify({ data, ...rest }).replaceAll(':"', ': "'),
        JSON.stringify({ data, ...rest }).replaceAll(':"', ':  "'),
        JSON.stringify({ ...rest, data }).replace('SFRUUA==', 'SFRUUA\\u003d='),
        JSON.stringify({ ...rest, data }).replace('"data"', '"d\\u0061ta"'),
        JSON.stringify({ ...rest, data: '' }),
    ];
    const result = await read(texts.join('\n'));
    t.same(
        result.lines.map((line) => line.ok && line.record),
        texts.map((text) => JSON.parse(text)),
    );

    const wrong = [
        JSON.stringify({ ...rest, 'x"data': 'AAAA' }),
        JSON.stringify({ ...rest, subject: { data: 'AAAA' } }),
        JSON.stringify({ ...rest, subject: { data: 'AAAA' }, data: '' }),
        `${JSON.stringify({ ...rest, data }).slice(0, -1)},"data":""}`,
        `${JSON.stringify({ data: '', ...rest }).slice(0, -1)},"data":"${data}"}`,
        `"data":"${data}"`,
        JSON.stringify({ ...rest, data: 'A-_A' }),
        JSON.stringify({ ...rest, data: 'AéAA' }),
    ];
    t.same(
        reasons(await read(wrong.join('\n'))).map((text) => text.replace(/^\S+ /, '')),
        [
            'data is required; x"data is not allowed',
            'data is required; subject.data is not allowed',
            'subject.data is not allowed',
            'data appears more than once',
            'data appears more than once',
            'is not valid JSON',
            'data must be base64: standard alphabet, padded, without line breaks',
            'data must be base64: standard alphabet, padded, without line breaks',
        ],
    );
});

t.test('reads gzip of one member or several', async (t) => {
    const text = `${good}\n${good}\n`;
    const members = Buffer.concat([gzipSync(text), gzipSync(''), gzipSync(text), gzipSync(good)]);
    for (const size of [1, 7, 100_000]) {
        t.match((await read(members, size)).totals, { good: 5, bad: 0, bytes: 5 * good.length + 4 });
    }

    t.match((await read(Buffer.concat([members, Buffer.alloc(1000)]))).totals, { good: 5, bad: 0 }, 'zeros after the end');
    const long = gzipSync(text.repeat(1000));
    const mixed = Buffer.concat([...Array.from({ length: 5000 }, () => gzipSync('')), long, gzipSync(text), long, gzipSync(''), long]);
    t.match((await read(mixed)).totals, { good: 6002, bad: 0 }, 'thousands of empty ones');
});

t.test('hands on every whole line of gzip that was cut off, then says where it ends', async (t) => {
    const whole = Array.from({ length: 2_000 }, (_, index) => good.replace('SFRUUA==', Buffer.from(`${index * 7919}`).toString('base64')));
    const packed = gzipSync(whole.join('\n'));
    for (const cut of [packed.length - 1, packed.length - 9, packed.length >> 1, 40, 12]) {
        const most = inflateRawSync(packed.subarray(10, cut), { finishFlush: constants.Z_SYNC_FLUSH }).toString();
        const complete = most.split('\n').length - (most === whole.join('\n') ? 0 : 1);
        const { lines, totals } = await read(packed.subarray(0, cut));
        t.equal(totals.good, most === whole.join('\n') ? 1_999 : complete, `cut at ${cut}`);
        t.equal(totals.bad, 1);
        t.match(lines.at(-1), {
            line: totals.good + 1,
            byteOffset: whole.slice(0, totals.good).join('\n').length + (totals.good > 0 ? 1 : 0),
            problems: [{ field: '', reason: 'is where reading ends: The gzip file is damaged or was cut off' }],
        });
    }
});

t.test('hands on every whole line of gzip that was cut off to a reader that takes its time', async (t) => {
    for (let count = 340; count < 400; count += 6) {
        const lines = Array.from({ length: count }, () => good.replace('SFRUUA==', randomBytes(1500).toString('base64')));
        const packed = gzipSync(`${lines.join('\n')}\n`);
        const reading = readRecords(chunks(packed.subarray(0, packed.length - 6), 65_536));
        for await (const { line } of reading) {
            for (let turn = 0; line % 7 === 0 && turn < 200; turn += 1) {
                await setImmediate();
            }
        }

        t.match(reading.totals, { good: count, bad: 1 });
    }
});

t.test('hands on what comes before the damage in a small gzip file', async (t) => {
    const whole = Array.from({ length: 200 }, (_, index) => good.replace('SFRUUA==', Buffer.from(`${index * 7919}`).toString('base64')));
    const packed = gzipSync(`${whole.join('\n')}\n`);
    const damaged = Buffer.from(packed);
    damaged.fill(0xff, packed.length >> 1, (packed.length >> 1) + 8);
    const { totals } = await read(damaged);
    t.ok(totals.good > 50 && totals.good < 200, `${totals.good} before the damage`);
});

t.test('reads a file, where it is damaged as far as anybody else does', async (t) => {
    // Longer than what is remembered of a member, so that it has to be read once more.
    const lines = Array.from({ length: 1_200 }, () => good.replace('SFRUUA==', randomBytes(1_500).toString('base64')));
    const packed = gzipSync(`${lines.join('\n')}\n`);
    const damaged = Buffer.from(packed);
    damaged.fill(0xff, packed.length - 100_000, packed.length - 99_900);
    const file = join(t.testdir(), 'records.gz');
    for (const bytes of [packed, damaged]) {
        writeFileSync(file, bytes);
        const fromFile = readRecords(recordSource(file));
        const kept: RecordLine[] = [];
        for await (const line of fromFile) {
            kept.push(line);
        }
        const { lines: fromStream, totals } = await read(bytes);
        t.same(kept, fromStream);
        t.same(fromFile.totals, totals);
    }

    const pipe = join(t.testdir(), 'pipe');
    execFileSync('mkfifo', [pipe]);
    const reading = readRecords(recordSource(pipe));
    writeFile(pipe, damaged, () => {});
    let last: RecordLine | undefined;
    for await (const line of reading) {
        last = line;
    }
    t.match(last, { ok: false, problems: [{ reason: /damaged or was cut off/ }] }, 'which can be read only once');

    await t.rejects(
        readRecords(recordSource(join(t.testdir(), 'none')))
            .batches()
            [Symbol.asyncIterator]()
            .next(),
        { code: 'ENOENT' },
    );
});

t.test('says so when gzip is damaged or goes on with something else', async (t) => {
    const packed = gzipSync(`${good}\n`.repeat(5));
    const damaged = Buffer.from(packed);
    damaged.set([0xff, 0xff], packed.length >> 1);
    const flagged = Buffer.from(packed);
    flagged[3] = 0x80;
    const behind = [packed.subarray(0, 7), Buffer.from('g')].map((rest) => Buffer.concat([packed, rest]));
    for (const bytes of [damaged, flagged, ...behind, packed.subarray(0, 2)]) {
        t.match(reasons(await read(bytes)).at(-1), /is where reading ends: The gzip file is damaged or was cut off$/);
    }

    for (const rest of [good, 'go', '\r\n']) {
        const result = reasons(await read(Buffer.concat([packed, Buffer.from(rest)])));
        t.match(result.at(-1), /is where reading ends: The gzip file has something else behind it: not read any further$/);
    }
});

t.test('hands on everything before a wrong checksum or length, or something else behind the end, whatever the chunks', async (t) => {
    const text = Array.from({ length: 20_000 }, (_, index) => `${good.replace('www', `h${index * 7919}`)}\n`).join('');
    const packed = gzipSync(text);
    const wrong = (place: number): Buffer => {
        const bytes = Buffer.from(packed);
        bytes[place] = (bytes[place] ?? 0) ^ 1;
        return bytes;
    };
    for (const bytes of [wrong(packed.length - 8), wrong(packed.length - 1), Buffer.concat([packed, Buffer.from('garbage')])]) {
        for (const size of [packed.length - 7, packed.length, packed.length + 1, 65_536, 1_000]) {
            const result = await read(bytes, size);
            t.match(result.totals, { good: 20_000, bad: 1 });
            t.match(result.lines.at(-1), { line: 20_001, byteOffset: text.length });
        }
    }
});

t.test('passes over all that the head of a gzip member may hold', async (t) => {
    const deflated = gzipSync(`${good}\n`).subarray(10);
    const heads = ['1f8b0808', '1f8b0810', '1f8b0804', '1f8b0802', '1f8b081e'].map((start) => Buffer.from(`${start}000000000003`, 'hex'));
    const parts = ['name\0', 'comment\0', '\x05\0extra', '', '\x05\0extraname\0comment\0'];
    const members = heads.map((head, index) => {
        const start = Buffer.concat([head, Buffer.from(parts[index] ?? '')]);
        const checksum = Buffer.from(Uint16Array.of(crc32(start)).buffer);
        return Buffer.concat([start, ...(index < 3 ? [] : [checksum]), deflated]);
    });
    for (const size of [1, 3, 100_000]) {
        t.match((await read(Buffer.concat(members), size)).totals, { good: 5, bad: 0 });
    }

    t.match(reasons(await read(Buffer.concat([...members.slice(0, 1), ...heads.slice(0, 1), Buffer.from('nam')]))), [/^2@.*cut off$/]);
});

t.test('says so when something comes behind the zeros at the end of gzip', async (t) => {
    const packed = gzipSync(`${good}\n`);
    for (const size of [1, 7, packed.length, 100_000]) {
        for (const rest of [packed, Buffer.from(good)]) {
            const result = await read(Buffer.concat([packed, Buffer.alloc(600), rest]), size);
            t.match(reasons(result), [/is where reading ends: The gzip file has padding with something behind it: not read any further$/]);
            t.match(result.totals, { good: 1, bad: 1 });
        }
    }
});

t.test('says so while much of what comes before the zeros is still to be read', async (t) => {
    const packed = gzipSync(Array.from({ length: 20_000 }, (_, index) => `${good.replace('www', `h${index}`)}\n`).join(''));
    async function* source(): AsyncGenerator<Uint8Array> {
        yield* chunks(packed, 65_536);
        yield Buffer.alloc(100);
        yield gzipSync(good);
    }

    const reading = readRecords(source());
    const bad: RecordLine[] = [];
    for await (const line of reading) {
        bad.push(...(line.ok ? [] : [line]));
    }

    t.match(bad, [{ line: 20_001, problems: [{ reason: /padding with something behind it/ }] }]);
    t.match(reading.totals, { good: 20_000, bad: 1 });
});

t.test('closes a stream that is silent when its reader leaves', async (t) => {
    for (const bytes of [Buffer.from(`${good}\n`), gzipSync(`${good}\n`)]) {
        const source = new Readable({ read() {} });
        source.push(bytes);
        for await (const { ok } of readRecords(source)) {
            t.ok(ok);
            break;
        }

        t.ok(source.destroyed);
    }
});

t.test('says so when a file is packed in another way, and reads no further', async (t) => {
    const others: [string, string][] = [
        ['504b030414000000', 'a zip file'],
        ['425a6839314159265359', 'packed with bzip2'],
        ['fd377a585a000004', 'packed with xz'],
        ['28b52ffd0458', 'packed with zstd'],
    ];
    for (const [start, name] of others) {
        for (const size of [1, 100_000]) {
            const bytes = Buffer.concat([Buffer.from(start, 'hex'), Buffer.from('\n\n')]);
            t.same(reasons(await read(bytes, size)), [
                `1@0 is where reading ends: The file is ${name}: unpack it first, only gzip is read packed`,
            ]);
        }
    }

    t.match((await read(`BZhang\n${good}\nPK\n`)).totals, { good: 1, bad: 2 }, 'text that only looks like it');
});

t.test('stops at gzip that expands beyond all measure', async (t) => {
    const bomb = gzipSync(Buffer.alloc(200 * 1_048_576, ' '));
    const result = await read(bomb);
    t.match(reasons(result), [/is where reading ends: The gzip file expands more than 250 times: not read any further/]);
    t.ok(result.totals.bytes < 70 * 1_048_576, String(result.totals.bytes));
});
