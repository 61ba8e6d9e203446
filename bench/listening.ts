import { setTimeout as sleep } from 'node:timers/promises';
import type { Checkout } from './checkout.ts';
import { type Commits, untilArrivals } from './committed.ts';
import { AFTERWARDS, warmUp } from './pace.ts';
import { type Background, background } from './processes.ts';
import type { Figure, Figures, Run, Section } from './section.ts';
import { CPU_FIGURES, cpuSince, type HostOptions, type SenderUnderTest, withSender } from './senders.ts';
import { percentilesOf } from './steady.ts';

const PROCESSES = 8;
/** Fewer a second than those from which on a process looks by itself and notifies nobody. */
const COMMITS: Commits = { title: '50/s', count: 400, every: [20, 0] };
/** Before those that count. */
const SETTLING: Commits = { ...COMMITS, count: 100 };
const WARM = 5_000;

const FIGURES: Readonly<Record<string, Figure>> = {
    p50: { label: 'commit to arrival p50, ms', digits: 1 },
    p95: { label: 'commit to arrival p95, ms', digits: 1 },
    postgres: { ...(CPU_FIGURES.postgres as Figure), bar: '≤ 1.3 ×' },
    redis: CPU_FIGURES.redis as Figure,
};

/** What it costs PostgreSQL that each commit of a host is heard, where many processes listen. */
export const listening: Section = {
    name: 'listening',
    discarded: 0,

    async open({ own, scale }) {
        const one = { name: 'one', run: committing(own, 1, scale) };
        return {
            measurements: [
                {
                    title: `${PROCESSES} listening processes, one of which commits ${COMMITS.title} in transactions of the host`,
                    figures: FIGURES,
                    scanwire: async (checkout) => committing(checkout, PROCESSES, scale),
                    peers: async () => [one],
                },
            ],
        };
    },
};

function committing(checkout: Checkout, processes: number, scale: number): Run {
    return () =>
        withSender({ checkout, kind: 'servers' }, async (sender) => {
            const others = await Promise.all(Array.from({ length: processes - 1 }, () => listener(checkout, sender)));
            try {
                await warmUp(sender, Math.ceil(WARM * scale));
                return await costOfCommits(sender, scale);
            } finally {
                await Promise.all(others.map(({ stop }) => stop()));
            }
        });
}

/** Another process of the deployment, which publishes nothing. */
export function listener(checkout: Checkout, { store }: Pick<SenderUnderTest, 'store'>, host: HostOptions = {}): Promise<Background> {
    const { DATABASE_URL = '', ...env } = store.urls;
    const args = ['http://127.0.0.1/', 'servers', DATABASE_URL, '0', JSON.stringify(host)];
    return background(checkout, 'scanwire-sender', { args, env });
}

async function costOfCommits(sender: SenderUnderTest, scale: number): Promise<Figures> {
    await untilArrivals(sender, SETTLING, scale);
    const before = await sender.cpu();
    const latencies = await untilArrivals(sender, COMMITS, scale);
    await sleep(AFTERWARDS);
    const { postgres, redis } = await cpuSince(before, sender, latencies.length);
    const { p50 = Number.NaN, p95 = Number.NaN } = percentilesOf(latencies);
    return { p50, p95, ...(postgres !== undefined && { postgres }), ...(redis !== undefined && { redis }) };
}
