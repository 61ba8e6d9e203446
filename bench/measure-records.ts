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
}

export interface RecordsComparison {
    /** A check against Node's own gunzip and `JSON.parse`. */
    readonly check: Pair<RecordFigures>;
    /** A check against `JSON.parse` alone, behind scanwire's unpacking and cutting into lines. */
    readonly checkAlone: Pair<RecordFigures>;
    /** The same two for a reader of the responses. */
    readonly decode: Pair<RecordFigures>;
    readonly decodeAlone: Pair<RecordFigures>;
    /** A check against Ajv behind the same unpacking. */
    readonly ajv: Pair<RecordFigures>;
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
    const against = (ours: string, peer: string): Promise<Pair<RecordFigures>> => sideBySide(reading(ours), reading(peer), count);
    const peaks = async (flags: readonly string[]): Promise<Peaks> => [
        (await reading('check', 1, flags)()).peakMiB,
        (await reading('check', 10, flags)()).peakMiB,
    ];

    try {
        await pipeline(recordLines(RECORDS_BYTES), createGzip(), createWriteStream(file));
        return {
            check: await against('check', 'gunzip'),
            checkAlone: await against('check', 'parse'),
            decode: await against('decode', 'gunzip'),
            decodeAlone: await against('decode', 'parse'),
            ajv: await against('check', 'ajv'),
            peaks: await peaks([]),
            fullPeaks: await peaks([`--min-semi-space-size=${FULL_SEMI_SPACE}`]),
        };
    } finally {
        await rm(folder, { recursive: true });
    }
}
