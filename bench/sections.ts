import { child } from './child.ts';
import { measureCapture } from './measure-capture.ts';
import { DELIVERIES, measureDeliveries } from './measure-deliveries.ts';
import { HOSTS, measureIndex } from './measure-index.ts';
import { measureRecords, RECORDS_BYTES, type RecordFigures } from './measure-records.ts';
import { rounds } from './rounds.ts';
import { serveCost } from './serve-cost.ts';
import type { Pair } from './side-by-side.ts';

const MEGABYTES = RECORDS_BYTES / 1e6;

/** What is measured, scanwire, peer, ratio. */
export type Row = readonly [what: string, scanwire: string, peer: string, ratio: string];

export interface Section {
    readonly name: string;
    /** @param count Rounds that count. */
    measure(count: number): Promise<readonly Row[]>;
}

export const sections: readonly Section[] = [
    { name: 'deliveries', measure: deliveries },
    { name: 'index', measure: index },
    { name: 'records', measure: records },
    { name: 'capture', measure: capture },
    { name: 'host', measure: host },
    { name: 'serve', measure: serve },
];

async function deliveries(count: number): Promise<Row[]> {
    const { embedded, servers, bare } = await measureDeliveries(count);
    return [
        compared(
            `deliveries/s, Redis + PostgreSQL (${DELIVERIES.servers}); peer: BullMQ + undici, no rows`,
            servers.perSecond,
            bare.perSecond,
            0,
        ),
        compared(`deliveries/s, embedded (${DELIVERIES.embedded}); the same peer`, embedded.perSecond, bare.perSecond, 0),
        alone('events accepted/s, Redis + PostgreSQL', servers.acceptedPerSecond ?? 0),
        alone('events accepted/s, embedded', embedded.acceptedPerSecond ?? 0),
    ];
}

async function index(count: number): Promise<Row[]> {
    const { scanwire, fastify } = await measureIndex(count);
    return [
        compared(`index of ${HOSTS} hosts, s; peer: fastify + pg`, scanwire.seconds, fastify.seconds, 2),
        compared('  first byte, ms', scanwire.firstByteMs, fastify.firstByteMs, 0),
        compared('  peak memory of the server, MiB', scanwire.peakMiB, fastify.peakMiB, 0),
        compared('  body, MiB', scanwire.mebibytes, fastify.mebibytes, 1),
    ];
}

async function records(count: number): Promise<Row[]> {
    const { check, checkByNode, ajv, decode, decodeByNode, peaks, fullPeaks } = await measureRecords(count);
    return [
        readingSpeed("records check; peer: Node's gunzip and JSON.parse", checkByNode),
        readingSpeed('  peer: JSON.parse, lent the unpacking of scanwire', check),
        readingSpeed('  peer: Ajv, lent the unpacking of scanwire', ajv),
        readingSpeed("records check, with the response decoded; peer: Node's gunzip and JSON.parse", decodeByNode),
        readingSpeed('  peer: JSON.parse, lent the unpacking of scanwire', decode),
        alone(`records check, peak memory over idle, ${MEGABYTES} MB, MiB`, peaks[0]),
        alone('  ten times as much', peaks[1]),
        alone("  V8's young generation at its full size from the start", fullPeaks[0]),
        alone('  the same, ten times as much', fullPeaks[1]),
    ];
}

/** Of what was packed, both contenders at once on one core. */
function readingSpeed(what: string, { ours, peer, speed }: Pair<RecordFigures>): Row {
    const [our, peers] = [ours, peer].map(({ cpuSeconds }) => fixed(MEGABYTES / cpuSeconds, 0)) as [string, string];
    return [`${what}, MB a CPU second`, our, peers, fixed(speed, 2)];
}

async function capture(count: number): Promise<Row[]> {
    const { captured, bare } = await measureCapture(count);
    return [
        compared('capture of 2,000 endpoints, 100 at a time, records/s; peer: tls.connect', captured.perSecond, bare.perSecond, 0),
        compared('  peak memory, MiB', captured.peakMiB, bare.peakMiB, 0),
    ];
}

async function host(count: number): Promise<Row[]> {
    const [plugins, bare] = (await rounds(
        ['plugins', 'bare'].map((variant) => ({
            name: variant,
            run: () => child<HostFigures>('host-cost.js', { args: [variant], execArgv: ['--expose-gc'] }),
        })),
        count,
    )) as [HostFigures, HostFigures];
    return [
        compared('hapi server with token-auth and rest-api-v2, ms to the first answer; peer: bare hapi', plugins.startMs, bare.startMs, 0),
        compared('  memory, MiB', plugins.rssMiB, bare.rssMiB, 0),
        compared('  CommonJS modules loaded', plugins.modules, bare.modules, 0),
        compared('  of them queue, database driver or HTTP client', plugins.heavy, bare.heavy, 0),
    ];
}

interface HostFigures {
    readonly startMs: number;
    readonly rssMiB: number;
    readonly modules: number;
    readonly heavy: number;
    readonly [figure: string]: number;
}

async function serve(count: number): Promise<Row[]> {
    const [cost] = await rounds([{ name: 'serve', run: serveCost }], Math.min(count, 3));
    return [
        alone('scanwire serve, first start on an empty folder, ms', cost?.firstStartMs ?? 0),
        alone('  later starts, ms', cost?.laterStartMs ?? 0),
        alone('  idle memory, MiB', cost?.idleMiB ?? 0),
    ];
}

function compared(what: string, ours: number, peers: number, digits: number): Row {
    return [what, fixed(ours, digits), fixed(peers, digits), peers === 0 ? '' : fixed(ours / peers, 2)];
}

function alone(what: string, value: number): Row {
    return [what, fixed(value, 0), '', ''];
}

function fixed(value: number, digits: number): string {
    return value.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
}
