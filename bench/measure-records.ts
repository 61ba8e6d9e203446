import assert from 'node:assert';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { child } from './child.ts';
import { recordLines } from './record-lines.ts';
import { type CpuCost, type Pair, sideBySide } from './side-by-side.ts';

export interface RecordFigures extends CpuCost {
    /** Over idle. */
    readonly peakMiB: number;
    /** Good ones that were read. */
    readonly records: number;
}

export interface RecordsComparison {
    /** A check against `JSON.parse` and no more, behind scanwire's unpacking and cutting into lines. */
    readonly check: Pair<RecordFigures>;
    /** A check against the same behind Node's own gunzip as it comes. */
    readonly checkByNode: Pair<RecordFigures>;
    /** A check against Ajv behind scanwire's unpacking. */
    readonly ajv: Pair<RecordFigures>;
    /** A reader of the responses against the first two. */
    readonly decode: Pair<RecordFigures>;
    readonly decodeByNode: Pair<RecordFigures>;
    /** Peaks of a check of the file, and of ten times as much. */
    readonly peaks: Peaks;
    /** The same when V8 does not wait before it makes its young generation as large as it may become. */
    readonly fullPeaks: Peaks;
}

export type Peaks = readonly [once: number, tenfold: number];

/** In bytes, before packing. */
export const RECORDS_BYTES: number = Number(process.env.BENCH_RECORDS_MB ?? 1000) * 1_000_000;

/** In MiB: the largest that V8 lets a half of the young generation become unless it is told otherwise. */
const FULL_SEMI_SPACE = 16;

/** A gigabyte of packed records, read in different ways, each in a process of its own. */
export async function measureRecords(count: number): Promise<RecordsComparison> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const file = join(folder, 'records.jsonl.gz');
    const reading =
        (way: string, times = 1, flags: readonly string[] = []) =>
        (): Promise<RecordFigures> =>
            child('read-records.js', { args: [way, file, String(times)], execArgv: ['--expose-gc', ...flags], oneCore: true });
    const against = async (ours: string, peer: string): Promise<Pair<RecordFigures>> => {
        const pair = await sideBySide(reading(ours), reading(peer), count);
        assert.strictEqual(pair.ours.records, pair.peer.records);
        return pair;
    };
    const peaks = async (flags: readonly string[]): Promise<Peaks> => [
        (await reading('check', 1, flags)()).peakMiB,
        (await reading('check', 10, flags)()).peakMiB,
    ];

    try {
        await pipeline(recordLines(RECORDS_BYTES), createGzip(), createWriteStream(file));
        return {
            check: await against('check', 'parse'),
            checkByNode: await against('check', 'gunzip'),
            ajv: await against('check', 'ajv'),
            decode: await against('decode', 'parse'),
            decodeByNode: await against('decode', 'gunzip'),
            peaks: await peaks([]),
            fullPeaks: await peaks([`--min-semi-space-size=${FULL_SEMI_SPACE}`]),
        };
    } finally {
        await rm(folder, { recursive: true });
    }
}
