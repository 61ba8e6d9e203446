import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from './contenders/http.ts';
import { investigation } from './contenders/investigation.ts';
import type { Figure, Figures, Run, Section } from './section.ts';
import { CPU_FIGURES, cpuSince, type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';

/** Events that come one after the other, so many a second. */
interface Stretch {
    readonly rate: number;
    readonly seconds: number;
    /** Delivered before, at least: a planner may walk a table of a few thousand rows. */
    readonly history: number;
}

const SERVERS: readonly Stretch[] = [
    { rate: 20, seconds: 12, history: 2_000 },
    { rate: 100, seconds: 8, history: 2_000 },
    { rate: 200, seconds: 8, history: 2_000 },
    { rate: 100, seconds: 8, history: 8_000 },
    { rate: 100, seconds: 8, history: 30_000 },
];
const EMBEDDED: readonly Stretch[] = [
    { rate: 20, seconds: 12, history: 500 },
    { rate: 50, seconds: 8, history: 500 },
];
const SHARES = [50, 95, 99];
/** At the beginning of a stretch, not counted: what a burst has left to do is then done. */
const SETTLING_SECONDS = 2;

/** What most users have: a few events a second. Then nothing is batched, and every event pays the fixed cost of each statement. */
export const pace: Section = {
    name: 'pace',
    discarded: 0,

    async open({ own, scale }) {
        const peer = (name: string, kind: 'bare' | 'rows') => ({ name, run: steadily({ checkout: own, kind }, SERVERS, scale) });
        return {
            measurements: [
                {
                    title: 'events at everyday rates, Redis + PostgreSQL, default options',
                    figures: figuresOf(SERVERS),
                    scanwire: async (checkout) => steadily({ checkout, kind: 'servers' }, SERVERS, scale),
                    peers: async () => [peer('BullMQ + undici, no rows', 'bare'), peer('BullMQ + undici, two statements for rows', 'rows')],
                },
                {
                    title: 'events at everyday rates, embedded, default options',
                    figures: figuresOf(EMBEDDED),
                    scanwire: async (checkout) => steadily({ checkout, kind: 'embedded' }, EMBEDDED, scale),
                },
            ],
        };
    },
};

function figuresOf(stretches: readonly Stretch[]): Readonly<Record<string, Figure>> {
    const latencies = SHARES.map((share): [string, Figure] => [`p${share}`, { label: `publish to arrival p${share}, ms`, digits: 1 }]);
    const figures = stretches.flatMap((stretch) =>
        [...latencies, ...Object.entries(CPU_FIGURES)].map(([name, figure]): [string, Figure] => [
            `${nameOf(stretch)}: ${name}`,
            { ...figure, label: `${nameOf(stretch)}: ${figure.label}` },
        ]),
    );
    return Object.fromEntries(figures);
}

function nameOf({ rate, history }: Stretch): string {
    return `${rate}/s, ${history.toLocaleString('en')} delivered before`;
}

function steadily(options: SenderOptions, stretches: readonly Stretch[], scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            const figures: [string, number][] = [];
            let delivered = 0;
            for (const stretch of stretches) {
                const missing = Math.max(0, Math.ceil(stretch.history * scale) - delivered);
                await grow(sender, missing);
                const [settling, count] = [SETTLING_SECONDS, stretch.seconds].map((seconds) =>
                    Math.ceil(stretch.rate * seconds * scale),
                ) as [number, number];
                await steady(sender, stretch.rate, settling);
                const measured = await steady(sender, stretch.rate, count);
                figures.push(...Object.entries(measured).map(([name, value]): [string, number] => [`${nameOf(stretch)}: ${name}`, value]));
                delivered += missing + settling + count;
            }

            return Object.fromEntries(figures);
        });
}

async function grow(sender: SenderUnderTest, count: number): Promise<void> {
    if (count > 0) {
        await sender.burst(count);
        await sender.finished(count);
    }

    await sender.analyze();
}

async function steady(sender: SenderUnderTest, rate: number, count: number): Promise<Figures> {
    const before = await sender.cpu();
    const sent = new Map<string, number>();
    const accepted: Promise<void>[] = [];
    const started = performance.now();
    for (let index = 0; index < count; index += 1) {
        await sleep(started + (index * 1000) / rate - performance.now());
        const id = randomUUID();
        sent.set(id, now());
        accepted.push(sender.publish(investigation(id)));
    }

    await Promise.all(accepted);
    const arrivals = await sender.finished(count, { times: true });
    const cpu = await cpuSince(before, sender, count);
    const latencies = [...arrivals].map(([id, at]) => (at - (sent.get(id) as number)) / 1000).toSorted((a, b) => a - b);
    const percentiles = SHARES.map((share) => [`p${share}`, latencies[Math.floor((latencies.length * share) / 100)] as number] as const);
    return { ...Object.fromEntries(percentiles), ...cpu };
}
