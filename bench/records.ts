import assert from 'node:assert';
import { createWriteStream } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import type { Checkout } from './checkout.ts';
import { child } from './processes.ts';
import { recordLines } from './record-lines.ts';
import type { Figure, Figures, Section, Setting } from './section.ts';

/** Before packing. */
const MEGABYTES = 1_000;

const SPEED: Readonly<Record<string, Figure>> = {
    speed: { label: 'MB a CPU second', moreIsBetter: true },
    peakMiB: { label: 'peak memory over idle, MiB' },
};

/** In MiB: the largest that V8 lets a half of the young generation become unless it is told otherwise. */
const FULL_SEMI_SPACE = 16;

/** Packed records, read in different ways, each in a process of its own; two ways at a time, on one core. */
export const records: Section = {
    name: 'records',
    discarded: 1,
    oneCore: true,

    async open(setting) {
        const { file, megabytes, close } = await packedRecords(setting);
        const good = new Set<number>();
        const reading = (checkout: Checkout, way: string) => async (): Promise<Figures> => {
            const { cpuSeconds, peakMiB, records: count } = await readRecords(checkout, way, file);
            assert.strictEqual(good.add(count).size, 1, 'all ways read the same number of records');
            return { speed: megabytes / cpuSeconds, peakMiB };
        };
        const measurement = (title: string, way: string, peers: Readonly<Record<string, string>>) => ({
            title: `${title}, ${megabytes} MB`,
            figures: SPEED,
            scanwire: async (checkout: Checkout) => reading(checkout, way),
            peers: async () => Object.entries(peers).map(([name, peer]) => ({ name, run: reading(setting.own, peer) })),
        });
        const parse = { "Node's gunzip and JSON.parse": 'parse' };
        return {
            measurements: [
                measurement('records check', 'check', { ...parse, "Node's gunzip, JSON.parse and Ajv": 'ajv' }),
                measurement('records check, with the response decoded', 'decode', parse),
            ],
            close,
        };
    },
};

/** Peaks of a check of a file of records, and of ten times as much. */
export const memory: Section = {
    name: 'memory',
    discarded: 0,
    mostRounds: 1,

    async open(setting) {
        const { file, megabytes, close } = await packedRecords(setting);
        const measurement = (title: string, flags: readonly string[]) => ({
            title,
            figures: {
                once: { label: `peak memory over idle, ${megabytes} MB, MiB` },
                tenfold: { label: `peak memory over idle, ${megabytes * 10} MB, MiB` },
            },
            scanwire: async (checkout: Checkout) => async (): Promise<Figures> => ({
                once: (await readRecords(checkout, 'check', file, { flags })).peakMiB,
                tenfold: (await readRecords(checkout, 'check', file, { flags, times: 10 })).peakMiB,
            }),
        });
        return {
            measurements: [
                measurement('records check', []),
                measurement("records check, V8's young generation at its full size from the start", [
                    `--min-semi-space-size=${FULL_SEMI_SPACE}`,
                ]),
            ],
            close,
        };
    },
};

interface PackedRecords {
    readonly file: string;
    readonly megabytes: number;
    close(): Promise<void>;
}

async function packedRecords({ scale }: Setting): Promise<PackedRecords> {
    const megabytes = Math.ceil(MEGABYTES * scale);
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const file = join(folder, 'records.jsonl.gz');
    await pipeline(recordLines(megabytes * 1_000_000), createGzip(), createWriteStream(file));
    return { file, megabytes, close: () => rm(folder, { recursive: true }) };
}

interface ReadFigures {
    readonly cpuSeconds: number;
    /** Over idle. */
    readonly peakMiB: number;
    /** Good ones that were read. */
    readonly records: number;
}

function readRecords(
    checkout: Checkout,
    way: string,
    file: string,
    { times = 1, flags = [] }: { readonly times?: number; readonly flags?: readonly string[] } = {},
): Promise<ReadFigures> {
    return child(checkout, 'read-records', { args: [way, file, String(times)], execArgv: ['--expose-gc', ...flags], oneCore: true });
}
