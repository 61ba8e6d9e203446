import { randomUUID } from 'node:crypto';
import type { Checkout } from './checkout.ts';
import { now } from './contenders/http.ts';
import { investigation } from './contenders/investigation.ts';
import type { Burst } from './contenders/sender-server.ts';
import { warmUp } from './pace.ts';
import { REFERENCE } from './reference.ts';
import { type Figure, type Figures, type Measurement, type Peer, type Run, type Section, withBars } from './section.ts';
import { CPU_FIGURES, cpuSince, deliveriesOfEach, type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';

/** How many go before those that count: until V8 has compiled what is hot, a delivery costs twice as much. */
export interface Load {
    readonly warmUp: number;
    readonly counted: number;
    readonly how?: Burst;
}

const SERVERS: Load = { warmUp: 10_000, counted: 40_000 };
const SLOW: Load = { warmUp: 2_000, counted: 10_000 };
const EMBEDDED: Load = { warmUp: 500, counted: 3_000 };
/** Published one by one while the deliveries of the first ones go out. */
const ONE_BY_ONE = 500;
/** How many deliveries the calls are counted of. */
const CALLS = 5_000;
/** Events, one after the other, that each go to all exporters. */
const EVENTS = 20;

const FIGURES: Readonly<Record<string, Figure>> = {
    perSecond: { label: 'deliveries/s, until the last outcome is recorded', moreIsBetter: true },
    publishesPerSecond: { label: 'publishes/s, one after the other, while it delivers', moreIsBetter: true },
    acceptedPerSecond: { label: 'events accepted/s', moreIsBetter: true },
    ...CPU_FIGURES,
    all: { label: 'CPU of all, with the receiver, µs each' },
    sql: { label: 'SQL statements that clients call for 1,000' },
    redisCommands: { label: 'Redis commands that clients call for 1,000' },
    peakMiB: { label: 'peak memory of the process, MiB' },
};

/** The figures, with bars for some. */
export function figuresWith(bars: Readonly<Record<string, string>>): Readonly<Record<string, Figure>> {
    return withBars(FIGURES, bars);
}

/** As many deliveries as there can be. */
export const deliveries: Section = {
    name: 'deliveries',
    discarded: 0,

    async open({ own, scale }) {
        const bare: Peer = { name: 'BullMQ + undici, no rows', run: fullSpeed({ checkout: own, kind: 'bare' }, SERVERS, scale) };
        const ofServers = new Map<Checkout, Run>();
        const servers = (checkout: Checkout): Run => {
            const run = ofServers.get(checkout) ?? fullSpeed({ checkout, kind: 'servers' }, SERVERS, scale);
            ofServers.set(checkout, run);
            return run;
        };
        const one: Peer = { name: 'one exporter, default options', run: servers(own) };
        return {
            measurements: [
                {
                    title: `deliveries, Redis + PostgreSQL, default options (bars: ${REFERENCE})`,
                    figures: figuresWith({ perSecond: '≥ 0.75 ×', all: '≤ 420', sql: '≤ 150', redisCommands: '≤ 600' }),
                    scanwire: async (checkout) => servers(checkout),
                    peers: async () => [bare],
                },
                ...othersOf(scale, bare, one),
            ],
        };
    },
};

/** What is measured in other ways than the first. */
function othersOf(scale: number, bare: Peer, one: Peer): readonly Measurement[] {
    const measurement = (
        title: string,
        options: Omit<SenderOptions, 'checkout'>,
        { load = SERVERS, bars = {}, beside }: { readonly load?: Load; readonly bars?: Record<string, string>; readonly beside?: Peer },
    ): Measurement => ({
        title,
        figures: figuresWith(bars),
        scanwire: async (checkout) => fullSpeed({ checkout, ...options }, load, scale),
        peers: async () => (beside === undefined ? [] : [beside]),
    });
    return [
        measurement('deliveries, Redis + PostgreSQL, window 200', { kind: 'servers', host: { window: 200 } }, { beside: bare }),
        measurement(
            `deliveries through serve, 50 publishers, one event a request (bars: and ≥ 2,500/s where bare has 6,000/s)`,
            { kind: 'serve' },
            { bars: { perSecond: '≥ 0.6 ×' }, beside: one },
        ),
        measurement('deliveries to 10 exporters', { kind: 'servers', exporters: 10 }, { bars: { perSecond: '≥ 0.9 ×' }, beside: one }),
        measurement('deliveries to 100 exporters', { kind: 'servers', exporters: 100 }, { bars: { perSecond: '≥ 0.8 ×' }, beside: one }),
        {
            title: 'one event at a time to 100 exporters, from publish to last arrival',
            figures: { perSecond: { label: 'deliveries/s', moreIsBetter: true, bar: '≥ 0.9 ×' } },
            scanwire: async (checkout) => eventByEvent({ checkout, kind: 'servers', exporters: 100 }, scale),
            peers: async () => [one],
        },
        measurement(
            `deliveries to a receiver that takes 200 ms (bar: ${REFERENCE})`,
            { kind: 'servers', answersAfter: 200 },
            { load: SLOW, bars: { perSecond: '≥ 1,000' } },
        ),
        measurement('deliveries, embedded, default options', { kind: 'embedded' }, { load: EMBEDDED, beside: bare }),
        measurement(
            `deliveries through embedded serve, 50 publishers (bars: ${REFERENCE})`,
            { kind: 'serve-embedded' },
            { load: EMBEDDED, bars: { perSecond: '≥ 1,500', publishesPerSecond: '≥ 400' } },
        ),
        measurement(
            `deliveries through serve on PostgreSQL without Redis, 50 publishers (bars: ${REFERENCE})`,
            { kind: 'serve-postgres' },
            { load: EMBEDDED, bars: { perSecond: '≥ 1,000' } },
        ),
    ];
}

/** Publishes as fast as it is taken, after a warm-up. */
export function fullSpeed(options: SenderOptions, load: Load, scale: number): Run {
    return () => withSender(options, (sender) => atFullSpeed(sender, options, load, scale));
}

/** The same with a sender of these options that has sent nothing yet. */
export async function atFullSpeed(sender: SenderUnderTest, options: SenderOptions, load: Load, scale: number): Promise<Figures> {
    const { kind } = options;
    const exporters = deliveriesOfEach(options);
    const [before, counted, calls] = [load.warmUp, load.counted, CALLS].map((count) => Math.ceil((count * scale) / exporters)) as [
        number,
        number,
        number,
    ];
    await warmUp(sender, before, exporters, load.how);
    const cpu = await sender.cpu();
    const started = performance.now();
    await sender.burst(counted, load.how);
    const accepted = performance.now();
    await sender.finished(counted * exporters);
    const recorded = performance.now();
    return {
        perSecond: (counted * exporters * 1000) / (recorded - started),
        ...(kind !== 'bare' && { acceptedPerSecond: (counted * 1000) / (accepted - started) }),
        ...(await cpuSince(cpu, sender, counted * exporters)),
        peakMiB: await sender.peakMiB(),
        ...(options.answersAfter === undefined && (await callsOf(sender, calls, exporters, load.how))),
        ...(kind === 'serve-embedded' && { publishesPerSecond: await oneByOne(sender, Math.ceil(ONE_BY_ONE * scale)) }),
    };
}

/** Beside what is timed, since counting slows down. */
async function callsOf(sender: SenderUnderTest, events: number, exporters: number, how?: Burst): Promise<Figures> {
    const { DATABASE_URL, REDIS_URL } = sender.store.urls;
    if (DATABASE_URL === undefined && REDIS_URL === undefined) {
        return {};
    }

    const { sql, redis } = await sender.store.clientCalls(async () => {
        await sender.burst(events, how);
        await sender.finished(events * exporters);
    });
    const forThousand = (calls: number): number => (calls * 1000) / (events * exporters);
    return { ...(sql !== undefined && { sql: forThousand(sql) }), ...(redis !== undefined && { redisCommands: forThousand(redis) }) };
}

async function oneByOne(sender: SenderUnderTest, count: number): Promise<number> {
    const started = performance.now();
    for (let published = 0; published < count; published += 1) {
        await sender.publish(investigation());
    }

    const perSecond = (count * 1000) / (performance.now() - started);
    await sender.finished(count);
    return perSecond;
}

function eventByEvent({ exporters = 1, ...options }: SenderOptions, scale: number): Run {
    return () =>
        withSender({ ...options, exporters }, async (sender) => {
            await warmUp(sender, Math.ceil((SERVERS.warmUp * scale) / exporters), exporters);
            const events = Math.ceil(EVENTS * scale);
            let microseconds = 0;
            for (let event = 0; event < events; event += 1) {
                const id = randomUUID();
                const published = now();
                await sender.publish(investigation(id));
                const arrivals = await sender.finished(exporters, { times: true });
                microseconds += (arrivals.get(id) as number) - published;
            }

            return { perSecond: (events * exporters * 1_000_000) / microseconds };
        });
}
