import { stretchOf, warmUp } from './pace.ts';
import type { Figure, Measurement, Run, Section } from './section.ts';
import { type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';
import { LATENCIES } from './steady.ts';

const FAILED = 100_000;
/** Deliveries a second: what a replay has unless it is told, and the most. */
const RATES: readonly number[] = [100, 1_000];
/** 4,000 events, so that 200 are beyond the p95. */
const STRETCH = { rate: 200, seconds: 20 };
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

    async open({ own, scale }) {
        const failed = Math.ceil(FAILED * scale).toLocaleString('en');
        const without = { name: 'no replay', run: beside({ checkout: own, kind: 'serve' }, null, scale) };
        return {
            measurements: RATES.map(
                (rate, index): Measurement => ({
                    title: `serve, ${STRETCH.rate} events/s, beside a replay of ${failed} at ${rate.toLocaleString('en')}/s`,
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
                replayed: ((after.sent - before.sent) * 1_000) / (after.at - before.at),
            };
        });
}

async function timed(task: () => Promise<unknown>): Promise<number> {
    const begun = performance.now();
    await task();
    return performance.now() - begun;
}

interface Progress {
    readonly total: number;
    readonly sent: number;
    readonly at: number;
}

/** Of the only replay. What waits is what it has made due, and nobody has sent: new events have all arrived when it is asked. */
async function progressOf(sender: SenderUnderTest): Promise<Progress> {
    const [replay] = await sender.administer<readonly { readonly total: number; readonly done: number }[]>('GET', '/replays');
    const { count: waiting, more } = await sender.administer<{ readonly count: number; readonly more: boolean }>(
        'GET',
        '/deliveries/count?state=pending',
    );
    if (more) {
        throw new Error(`More than ${waiting} deliveries of the replay wait: too many to be counted`);
    }
    return { total: replay?.total ?? 0, sent: (replay?.done ?? 0) - waiting, at: performance.now() };
}
