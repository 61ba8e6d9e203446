import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { child } from './child.ts';
import { recordLines } from './record-lines.ts';
import { type Medians, rounds } from './rounds.ts';

export interface RecordFigures {
    readonly seconds: number;
    /** Of all threads: what other work on the machine changes least. */
    readonly cpuSeconds: number;
    /** Over idle. */
    readonly peakMiB: number;
    readonly [figure: string]: number;
}

export interface RecordsMedians {
    readonly check: Medians<RecordFigures>;
    readonly decode: Medians<RecordFigures>;
    readonly parse: Medians<RecordFigures>;
    readonly ajv: Medians<RecordFigures>;
    /** The same where one body in seven is packed. */
    readonly decodePacked: Medians<RecordFigures>;
    readonly parsePacked: Medians<RecordFigures>;
    /** One check of ten times as much. */
    readonly tenfold: RecordFigures;
}

/** In bytes, before packing. */
export const RECORDS_BYTES: number = Number(process.env.BENCH_RECORDS_MB ?? 1000) * 1_000_000;

/** A gigabyte of packed records, read in different ways, each in a process of its own that has one core to itself. */
export async function measureRecords(count: number): Promise<RecordsMedians> {
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const file = join(folder, 'records.jsonl.gz');
    const packed = join(folder, 'packed-bodies.jsonl.gz');
    try {
        await pipeline(recordLines(RECORDS_BYTES, 'plainly-asked'), createGzip(), createWriteStream(file));
        await pipeline(recordLines(RECORDS_BYTES, 'all'), createGzip(), createWriteStream(packed));
        const contenders = [
            ...['check', 'decode', 'parse', 'ajv'].map((way) => ({ name: way, run: () => reading(way, file) })),
            ...['decode', 'parse'].map((way) => ({ name: `${way} packed`, run: () => reading(way, packed) })),
        ];
        const [check, decode, parse, ajv, decodePacked, parsePacked] = await rounds<RecordFigures>(contenders, count);
        const tenfold = await reading('check', file, 10);
        return { check, decode, parse, ajv, decodePacked, parsePacked, tenfold } as RecordsMedians;
    } finally {
        await rm(folder, { recursive: true });
    }
}

function reading(way: string, file: string, times = 1): Promise<RecordFigures> {
    return child<RecordFigures>('read-records.js', { args: [way, file, String(times)], execArgv: ['--expose-gc'], oneCore: true });
}
