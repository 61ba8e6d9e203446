import { setTimeout as sleep } from 'node:timers/promises';
import type { Checkout } from './checkout.ts';
import type { Burst } from './contenders/sender-server.ts';
import { type AbsoluteBar, scaledTo } from './reference.ts';
import type { Figure, Figures, Measurement, Peer, Run, Section } from './section.ts';
import { CPU_FIGURES, cpuSince, type SenderKind, type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';
import { LATENCIES, percentilesOf, steady } from './steady.ts';

/** Events that come one after the other, so many a second. */
export interface Stretch {
    readonly rate: number;
    readonly seconds: number;
}

const SERVERS: readonly Stretch[] = [
    { rate: 20, seconds: 20 },
    { rate: 100, seconds: 8 },
    { rate: 200, seconds: 8 },
    { rate: 400, seconds: 8 },
];
const TWENTY: readonly Stretch[] = [{ rate: 20, seconds: 20 }];
const EMBEDDED: readonly Stretch[] = [
    { rate: 5, seconds: 40 },
    { rate: 20, seconds: 15 },
    { rate: 50, seconds: 8 },
    { rate: 100, seconds: 8 },
];
const WITHOUT_REDIS: readonly Stretch[] = [
    { rate: 20, seconds: 15 },
    { rate: 100, seconds: 8 },
];

/** Deliveries that come before, uncounted. */
const WARM = 10_000;
const WARM_EMBEDDED = 1_000;
/** At the beginning of a stretch, not counted: what a burst has left to do is then done. */
const SETTLING_SECONDS = 2;
/** After the last arrival, in milliseconds: what is done with an answer is then counted. */
export const AFTERWARDS = 300;

type Bars = Readonly<Record<string, string>>;
/** The same where they are absolute, of a machine whose floor is known. */
type AbsoluteBars = Readonly<Record<string, number>>;

/** Against the floor. */
const OF_THE_FLOOR: Bars = { p50: '≤ 1.4 ×', p95: '≤ 1.4 ×', p99: '≤ 1.6 ×', cpu: '≤ 1.3 ×' };

/** What most users have: a few events a second. Then nothing is batched, and every event pays the fixed cost of each statement. */
export const pace: Section = {
    name: 'pace',
    discarded: 0,

    async open({ own, scale }) {
        const paced = (one: Paced): Run => steadily(one, scale);
        const floor: Peer = { name: 'floor', run: paced({ checkout: own, kind: 'floor', warm: WARM, stretches: SERVERS }) };
        const measurement = (title: string, bars: Bars, one: Omit<Paced, 'checkout'>, peer: Peer): Measurement => ({
            title,
            figures: figuresOf(one.stretches, bars),
            scanwire: async (checkout) => paced({ checkout, ...one }),
            peers: async () => [peer],
        });
        const within = (title: string, bars: AbsoluteBars, one: Omit<Paced, 'checkout'>): Measurement =>
            measurement(title, Object.fromEntries(Object.keys(bars).map((name) => [name, '≤ 1.0 ×'])), one, {
                name: 'bar here',
                run: floor.run,
                as: scaledTo(absoluteBars(one.stretches, bars), '200/s '),
            });
        const embedded = { kind: 'serve-embedded', warm: WARM_EMBEDDED, stretches: EMBEDDED } as const;
        const withoutRedis = { kind: 'serve-postgres', warm: WARM_EMBEDDED, stretches: WITHOUT_REDIS } as const;
        return {
            measurements: [
                measurement(
                    'serve at everyday rates, one exporter; floor: BullMQ + undici and two prepared statements',
                    OF_THE_FLOOR,
                    { kind: 'serve', warm: WARM, stretches: SERVERS },
                    floor,
                ),
                within(
                    'serve, 20 events/s each to 10 exporters, until the last arrival',
                    { p50: 5, p95: 8 },
                    { kind: 'serve', warm: WARM, stretches: TWENTY, exporters: 10 },
                ),
                within('embedded serve at everyday rates', { p50: 6, p95: 10, cpu: 8_000 }, embedded),
                within('serve on PostgreSQL without Redis at everyday rates', { p50: 8, p95: 14, cpu: 5_000 }, withoutRedis),
            ],
        };
    },
};

/** The figures of `pacedFigures`, with bars by the names that `stretchOf` has for them. */
export function figuresOf(stretches: readonly Stretch[], bars: Bars): Readonly<Record<string, Figure>> {
    const figures = stretches.flatMap(({ rate }) =>
        Object.entries({ ...LATENCIES, ...CPU_FIGURES }).map(([name, figure]): [string, Figure] => [
            `${rate}/s ${name}`,
            { ...figure, label: `${rate}/s: ${figure.label}`, ...(bars[name] !== undefined && { bar: bars[name] }) },
        ]),
    );
    return Object.fromEntries(figures);
}

/** By the names of `pacedFigures`. */
function absoluteBars(stretches: readonly Stretch[], bars: AbsoluteBars): Readonly<Record<string, AbsoluteBar>> {
    const each = stretches.flatMap(({ rate }) =>
        Object.entries(bars).map(([by, there]): [string, AbsoluteBar] => [`${rate}/s ${by}`, { there, by }]),
    );
    return Object.fromEntries(each);
}

interface Paced extends Pick<SenderOptions, 'exporters'> {
    readonly checkout: Checkout;
    readonly kind: SenderKind;
    readonly warm: number;
    readonly stretches: readonly Stretch[];
}

function steadily({ warm, stretches, exporters = 1, ...options }: Paced, scale: number): Run {
    return () =>
        withSender({ ...options, exporters }, async (sender) => {
            await warmUp(sender, Math.ceil((warm * scale) / exporters), exporters);
            return pacedFigures(sender, stretches, scale, exporters);
        });
}

/** What each stretch measures, one after the other, named by its rate. */
export async function pacedFigures(sender: SenderUnderTest, stretches: readonly Stretch[], scale: number, exporters = 1): Promise<Figures> {
    const figures: [string, number][] = [];
    for (const stretch of stretches) {
        const measured = await stretchOf(sender, stretch, scale, exporters);
        figures.push(...Object.entries(measured).map(([name, value]): [string, number] => [`${stretch.rate}/s ${name}`, value]));
    }

    return Object.fromEntries(figures);
}

/** Publishes so many events as fast as they are taken, and counts the rows. */
export async function warmUp(sender: SenderUnderTest, events: number, exporters = 1, how?: Burst): Promise<void> {
    await sender.burst(events, how);
    await sender.finished(events * exporters);
    await sender.store.analyze();
}

/** Latencies in milliseconds, CPU time in microseconds an event. */
export async function stretchOf(sender: SenderUnderTest, { rate, seconds }: Stretch, scale: number, exporters = 1): Promise<Figures> {
    await steady(sender, rate, Math.ceil(rate * SETTLING_SECONDS * scale), exporters);
    await sender.recorded();
    const before = await sender.cpu();
    const count = Math.ceil(rate * seconds * scale);
    const { latencies } = await steady(sender, rate, count, exporters);
    await sleep(AFTERWARDS);
    return { ...percentilesOf(latencies), ...(await cpuSince(before, sender, count)) };
}
