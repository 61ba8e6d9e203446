import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import { checkRecord, decodeRecord, type RecordLine, readRecords, recordLine } from '../../lib/records/index.ts';
import { mutated } from '../lib/records/response/mutated.ts';
import { referenceLines } from './reference-reader.ts';

/** Short ones, so that a mutation often hits what matters. */
const LINES = ['servers.jsonl', 'old-style.jsonl', 'https.jsonl']
    .flatMap((name) => readFileSync(`fixtures/records/${name}`, 'utf8').trim().split('\n'))
    .filter((line) => line.length < 2_000);
const OTHER_LINES = [
    '',
    ' \t',
    '{}',
    '[]',
    'null',
    '"',
    '{"data":"AA==","host":"a","ip":"::1","port":1,"port":2}',
    '\u00e9',
    'x'.repeat(3_000),
];
const MAX_LINE_BYTES = 2_500;

/** One file with up to eight lines, often mutated, sometimes packed (and mutated then), in chunks of any size, read. */
export async function fuzzReader(random: () => number): Promise<void> {
    const below = (end: number): number => Math.floor(random() * end);
    const anyOf = <T>(values: readonly T[]): T => values[below(values.length)] as T;
    const lines = Array.from({ length: below(8) }, () => anyOf(random() < 0.8 ? LINES : OTHER_LINES) + anyOf(['\n', '\r\n']));
    const written = Buffer.from(anyOf(['', '', '\uFEFF']) + lines.join('').slice(0, anyOf([-1, undefined])));
    const file = random() < 0.7 ? Buffer.from(mutated(written, random)) : written;
    const packing = random();
    const packed = packing < 0.7 ? file : packing < 0.85 ? gzipSync(file) : Buffer.from(mutated(gzipSync(file), random));

    const read = await linesOf(packed, 1 + below(3_000), random() < 0.3);
    assertSound(read);
    if (packing < 0.85 && !read.mending && !startsLikeArchive(file)) {
        const seen = read.lines.map(({ line, byteOffset, ok }) => ({ line, byteOffset, ok }));
        assert.deepStrictEqual(seen, referenceLines(file, MAX_LINE_BYTES));
    }
}

interface Read {
    readonly lines: readonly RecordLine[];
    readonly mending: boolean;
}

async function linesOf(bytes: Buffer, size: number, mending: boolean): Promise<Read> {
    async function* chunks(): AsyncGenerator<Uint8Array> {
        for (let at = 0; at < bytes.length; at += size) {
            yield bytes.subarray(at, at + size);
        }
    }

    const reading = readRecords(chunks(), { maxLineBytes: MAX_LINE_BYTES, ...(mending && { mend: 'import' }) });
    const lines: RecordLine[] = [];
    for await (const line of reading) {
        lines.push(line);
    }

    const { records, good, bad } = reading.totals;
    assert.deepStrictEqual([records, good, bad], [lines.length, countOf(lines, true), countOf(lines, false)]);
    return { lines, mending };
}

function assertSound({ lines }: Read): void {
    for (const [index, line] of lines.entries()) {
        const before = lines[index - 1];
        assert(before === undefined || (line.line > before.line && line.byteOffset > before.byteOffset), 'lines go forward');
        if (line.ok) {
            assert(checkRecord(line.record).ok, 'a good record keeps the schema');
            assert.deepStrictEqual(JSON.parse(recordLine(line.record)), { ...line.record });
            assert.strictEqual(typeof decodeRecord(line.record).response.http, 'boolean');
        } else {
            assert(line.problems.length > 0, 'a bad line has a reason');
        }
    }
}

function countOf(lines: readonly RecordLine[], wanted: boolean): number {
    return lines.filter(({ ok }) => ok === wanted).length;
}

/** Gzip is unpacked, and others are refused as a whole. */
function startsLikeArchive(file: Buffer): boolean {
    const start = file.toString('latin1', 0, 4);
    return ['\x1f\x8b', 'PK\x03\x04', 'BZh', '\xfd7zX', '\x28\xb5\x2f\xfd'].some((mark) => start.startsWith(mark));
}
