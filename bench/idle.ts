import { setTimeout as sleep } from 'node:timers/promises';
import type { Figure, Section } from './section.ts';
import { type SenderOptions, withSender } from './senders.ts';

/** Until what was needed for the start is done. */
const SETTLING = 10_000;
const MEASURED = 30_000;

const FIGURES: Readonly<Record<string, Figure>> = {
    process: { label: 'CPU of the process, % of a core', digits: 2, bar: '≤ 0.7' },
    redis: { label: 'CPU of Redis, % of a core', digits: 2, bar: '≤ 0.2' },
    redisAlone: { label: 'the same while the process stands still', digits: 2 },
    postgres: { label: 'CPU of PostgreSQL, % of a core', digits: 2, bar: '≤ 0.15' },
    postgresAlone: { label: 'the same while the process stands still', digits: 2 },
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
    return withSender(options, async ({ pid, cpu, store }) => {
        async function shares(): Promise<Readonly<Record<string, number>>> {
            const [before, started] = [await cpu(), performance.now()];
            await sleep(MEASURED * scale);
            const [after, milliseconds] = [await cpu(), performance.now() - started];
            const entries = Object.entries(after).map(([name, time]) => [name, (time - (before[name] as number)) / 10 / milliseconds]);
            return Object.fromEntries(entries);
        }

        await store.analyze();
        await sleep(SETTLING * scale);
        const [called, started] = [await store.sqlCalls(), performance.now()];
        const { process: own, redis, postgres } = await shares();
        const [calls, seconds] = [await store.sqlCalls(), (performance.now() - started) / 1000];
        process.kill(pid, 'SIGSTOP');
        const alone = await shares().finally(() => process.kill(pid, 'SIGCONT'));
        return {
            ...(own !== undefined && { process: own }),
            ...(redis !== undefined && { redis, redisAlone: alone.redis as number }),
            ...(postgres !== undefined && { postgres, postgresAlone: alone.postgres as number }),
            ...(calls !== null && called !== null && { queries: (calls - called) / seconds }),
        };
    });
}
