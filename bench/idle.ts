import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure, Section } from './section.ts';
import { type SenderOptions, withSender } from './senders.ts';

/** Until what was needed for the start is done. */
const SETTLING = 10_000;
const MEASURED = 30_000;

const FIGURES: Readonly<Record<string, Figure>> = {
    process: { label: 'CPU of the process, % of a core', digits: 2, bar: '≤ 0.7' },
    redis: { label: 'CPU of Redis, % of a core', digits: 2, bar: '≤ 0.2' },
    postgres: { label: 'CPU of PostgreSQL, % of a core', digits: 2, bar: '≤ 0.15' },
    queries: { label: 'queries/s', digits: 2, bar: '≤ 1' },
};

/** What `serve` with one exporter costs while nothing happens. */
export const idle: Section = {
    name: 'idle',
    discarded: 0,
    mostRounds: 3,

    async open({ scale }) {
        return {
            measurements: [
                {
                    title: 'serve with one exporter, idle',
                    figures: FIGURES,
                    scanwire: async (checkout) => () => idling({ checkout, kind: 'serve' }, scale),
                },
            ],
        };
    },
};

function idling(options: SenderOptions, scale: number): Promise<Readonly<Record<string, number>>> {
    return withSender(options, async ({ cpu, store }) => {
        await sleep(SETTLING * scale);
        const [before, called] = [await cpu(), await store.sqlCalls()];
        const started = performance.now();
        await sleep(MEASURED * scale);
        const seconds = (performance.now() - started) / 1000;
        const [after, calls] = [await cpu(), await store.sqlCalls()];
        const shares = Object.entries(after).map(([name, time]) => [name, (time - (before[name] as number)) / 10_000 / seconds]);
        return {
            ...Object.fromEntries(shares),
            ...(called !== null && calls !== null && { queries: (calls - called) / seconds }),
        };
    });
}
