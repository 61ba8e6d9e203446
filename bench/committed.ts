import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Checkout } from './checkout.ts';
import { investigation } from './contenders/investigation.ts';
import { stretchOf, warmUp } from './pace.ts';
import { type AbsoluteBar, scaledTo } from './reference.ts';
import type { Figure, Figures, Run, Section } from './section.ts';
import { type SenderOptions, type SenderUnderTest, withSender } from './senders.ts';
import { percentilesOf } from './steady.ts';

/** Transactions of a host, each with one event. */
export interface Commits {
    readonly title: string;
    readonly count: number;
    /** From one publish to the next, in milliseconds: at least, and how much more at most. */
    readonly every: readonly [least: number, more: number];
    /** So many come before at the same pace, and do not count: as many connections of the host as run at once have to be made, and to plan what they say. */
    readonly first?: number;
}

const CASES: readonly Commits[] = [
    { title: 'alone, one every 2 to 3 s', count: 12, every: [2_000, 1_000], first: 3 },
    { title: '5/s', count: 60, every: [200, 0], first: 15 },
    { title: '50/s', count: 400, every: [20, 0], first: 200 },
];
/** How long a transaction goes on after the publish, in milliseconds. */
const OPEN = [50, 400] as const;
const WARM = 2_000;

const FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    CASES.flatMap(({ title }): [string, Figure][] => [
        [`${title} p50`, { label: `${title}: commit to arrival p50, ms`, digits: 1, bar: '≤ 1.0 ×' }],
        [`${title} p95`, { label: `${title}: commit to arrival p95, ms`, digits: 1, bar: '≤ 1.0 ×' }],
    ]),
);

const BARS: Readonly<Record<string, AbsoluteBar>> = Object.fromEntries(
    CASES.flatMap(({ title }): [string, AbsoluteBar][] => [
        [`${title} p50`, { there: 5, by: 'p50' }],
        [`${title} p95`, { there: 10, by: 'p95' }],
    ]),
);

/** How soon an event goes out that was published in a transaction of the host, which goes on for a while. */
export const committed: Section = {
    name: 'committed',
    discarded: 0,

    async open({ own, scale }) {
        return {
            measurements: [
                {
                    title: "committed in a host's transaction, 50 to 450 ms after the publish",
                    figures: FIGURES,
                    scanwire: async (checkout) => committing({ checkout, kind: 'servers' }, scale),
                    peers: async () => [{ name: 'bar here', run: floor(own, scale), as: scaledTo(BARS) }],
                },
            ],
        };
    },
};

function floor(checkout: Checkout, scale: number): Run {
    return () =>
        withSender({ checkout, kind: 'floor' }, async (sender) => {
            await warmUp(sender, Math.ceil(WARM * scale));
            return stretchOf(sender, { rate: 200, seconds: 8 }, scale);
        });
}

function committing(options: SenderOptions, scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            await warmUp(sender, Math.ceil(WARM * scale));
            const figures: Figures[] = [];
            for (const commits of CASES) {
                await untilArrivals(sender, { ...commits, count: commits.first ?? 0 }, 1);
                const { p50 = 0, p95 = 0 } = percentilesOf(await untilArrivals(sender, commits, scale));
                figures.push({ [`${commits.title} p50`]: p50, [`${commits.title} p95`]: p95 });
            }

            return Object.assign({}, ...figures) as Figures;
        });
}

/** From each commit to its arrival, in milliseconds; below 0 where the host heard of its commit later than the receiver. */
export async function untilArrivals(sender: SenderUnderTest, { count, every: [least, more] }: Commits, scale: number): Promise<number[]> {
    const commits: Promise<readonly [id: string, at: number]>[] = [];
    const transactions = Math.ceil(count * scale);
    let next = performance.now();
    for (let index = 0; index < transactions; index += 1) {
        await sleep(next - performance.now());
        next += least + more * spread(index);
        const id = randomUUID();
        const open = OPEN[0] + OPEN[1] * spread(3 * index);
        commits.push(sender.publishInTransaction(investigation(id), open).then((at) => [id, at]));
    }

    const committedAt = await Promise.all(commits);
    const arrivals = await sender.finished(transactions, { times: true });
    return committedAt.map(([id, at]) => ((arrivals.get(id) as number) - at) / 1000);
}

const GOLDEN_RATIO = 0.618_033_988_75;

/** From 0 to 1, evenly and in no order, the same in each round. */
function spread(index: number): number {
    return (index * GOLDEN_RATIO) % 1;
}
