import { stretchOf, warmUp } from './pace.ts';
import type { Figure, Measurement, Run, Section } from './section.ts';
import { type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';
import { LATENCIES } from './steady.ts';

const FAILED = 100_000;
/** Deliveries a second: what a replay has unless it is told, and the most. */
const RATES: readonly number[] = [100, 1_000];
const STRETCH = { rate: 200, seconds: 10 };
const WARM = 10_000;

const figuresOf = (bars: Readonly<Record<string, string>>): Readonly<Record<string, Figure>> => ({
    count: { label: 'to be replayed' },
    counted: { label: 'counted by a dry run, ms', bar: '≤ 2,000' },
    planned: { label: 'planned, ms', bar: '≤ 2,000' },
    ...Object.fromEntries(
        Object.entries(LATENCIES).map(([name, figure]) => [name, bars[name] === undefined ? figure : { ...figure, bar: bars[name] }]),
    ),
    replayed: { label: 'replayed/s meanwhile', moreIsBetter: true },
});

/** What new events notice of a replay to the exporter that gets them. */
export const replay: Section = {
    name: 'replay',
    discarded: 0,
    mostRounds: 3,

    async open({ own, scale }) {
        const without = { name: 'no replay', run: beside({ checkout: own, kind: 'serve' }, null, scale) };
        return {
            measurements: RATES.map(
                (rate, index): Measurement => ({
                    title: `serve, ${STRETCH.rate} events/s, beside a replay of ${FAILED.toLocaleString('en')} at ${rate.toLocaleString('en')}/s`,
                    figures: figuresOf(index === 0 ? { p95: '≤ 1.3 ×' } : {}),
                    scanwire: async (checkout) => beside({ checkout, kind: 'serve' }, rate, scale),
                    peers: async () => [without],
                }),
            ),
        };
    },
};

/** @param rate Null for no replay, while there is as much that one could have. */
function beside(options: SenderOptions, rate: number | null, scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            await warmUp(sender, Math.ceil(WARM * scale));
            await sender.store.addFailed(Math.ceil(FAILED * scale));
            await sender.store.analyze();
            if (rate === null) {
                return stretchOf(sender, STRETCH, scale);
            }

            const [exporter] = await sender.administer<readonly { readonly id: string }[]>('GET', '/exporters');
            const selection = { exporterId: exporter?.id, failedSince: new Date(0).toISOString(), rate };
            const counted = await timed(() => sender.administer('POST', '/replays', { ...selection, dryRun: true }));
            const planned = await timed(() => sender.administer('POST', '/replays', selection));
            const before = await progressOf(sender);
            const figures = await stretchOf(sender, STRETCH, scale);
            const after = await progressOf(sender);
            return {
                ...figures,
                counted,
                planned,
                count: after.total,
                replayed: ((after.done - before.done) * 1_000) / (after.at - before.at),
            };
        });
}

async function timed(task: () => Promise<unknown>): Promise<number> {
    const begun = performance.now();
    await task();
    return performance.now() - begun;
}

/** Of the only replay. */
async function progressOf(sender: SenderUnderTest): Promise<{ readonly total: number; readonly done: number; readonly at: number }> {
    const [replay] = await sender.administer<readonly { readonly total: number; readonly done: number }[]>('GET', '/replays');
    return { total: replay?.total ?? 0, done: replay?.done ?? 0, at: performance.now() };
}
