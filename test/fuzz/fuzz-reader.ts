import assert from 'node:assert';
import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import {
    checkRecord,
    decodeRecord,
    type ReadRecordsOptions,
    type RecordLine,
    readDecodedRecords,
    readRecords,
    stringifyRecord,
} from '../../lib/records/index.ts';
import { mutated } from '../lib/records/response/mutated.ts';
import { collect } from '../support/collect.ts';
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

    const size = 1 + below(3_000);
    const mending = random() < 0.3;
    const options: ReadRecordsOptions = { maxLineBytes: MAX_LINE_BYTES, ...(mending && { mend: 'import' }) };

    const read = await linesOf(packed, size, options);
    assertSound(read);
    assert.deepStrictEqual(
        await collect(readDecodedRecords(chunks(packed, size), options)),
        read.map((line) => (line.ok ? { ...line, record: decodeRecord(line.record) } : line)),
    );
    if (packing < 0.85 && !mending && !startsLikeArchive(file)) {
        const seen = read.map(({ line, byteOffset, ok }) => ({ line, byteOffset, ok }));
        assert.deepStrictEqual(seen, referenceLines(file, MAX_LINE_BYTES));
    }
}

async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array> {
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

async function linesOf(bytes: Buffer, size: number, options: ReadRecordsOptions): Promise<readonly RecordLine[]> {
    const reading = readRecords(chunks(bytes, size), options);
    const lines = await collect(reading);
    const { records, good, bad } = reading.totals;
    assert.deepStrictEqual([records, good, bad], [lines.length, countOf(lines, true), countOf(lines, false)]);
    return lines;
}

function assertSound(lines: readonly RecordLine[]): void {
    for (const [index, line] of lines.entries()) {
        const before = lines[index - 1];
        assert(before === undefined || (line.line > before.line && line.byteOffset > before.byteOffset), 'lines go forward');
        if (line.ok) {
            assert(checkRecord(line.record).ok, 'a good record keeps the schema');
            assert.deepStrictEqual(JSON.parse(stringifyRecord(line.record)), { ...line.record });
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
