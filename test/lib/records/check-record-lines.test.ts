import { Buffer } from 'node:buffer';
import fc from 'fast-check';
import t from 'tap';
import { type CheckedLine, type CheckRecordLinesOptions, checkRecordLines, type RecordTotals } from '../../../lib/records/index.ts';
import { arbitraryMutant } from './arbitrary-record.ts';

const record = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };
const good = JSON.stringify(record);

async function* chunks(bytes: Uint8Array, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

interface Read {
    readonly lines: CheckedLine[];
    readonly totals: RecordTotals;
}

async function read(text: string | Uint8Array, size = 65_536, options: CheckRecordLinesOptions = {}): Promise<Read> {
    const checked = checkRecordLines(chunks(Buffer.from(text as string), size), options);
    const lines: CheckedLine[] = [];
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
        { line: 1, byteOffset: 0, ok: true, record },
        { line: 2, byteOffset: good.length + 1, ok: true, record },
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
    const checked = checkRecordLines(endless());
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
        for await (const { line } of checkRecordLines(failing())) {
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
