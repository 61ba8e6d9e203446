import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../adapters/contract/assertions.ts';
import { type Arrival, longestGap } from './arrivals.ts';
import type { Checkout } from './checkout.ts';
import { memoryMiB } from './processes.ts';
import type { Figures, Measurement, Section } from './section.ts';
import { ended, SERVE, type ServedDeployment, withServed } from './served-deployment.ts';

/** A measurement of what `scanwire` does when something was away, without a peer. */
interface Recovery extends Pick<Measurement, 'title' | 'figures'> {
    measure(checkout: Checkout, scale: number): Promise<Figures>;
}

const receiverRefused: Recovery = {
    title: 'receiver back after 3 s of refusing, 300 deliveries waiting',
    figures: { all: { label: 'all delivered after it is back, ms (at most 10,000)' } },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ receiver, add, finished }) => {
            const count = Math.ceil(300 * scale);
            await receiver.refuse();
            await add(count);
            await sleep(3_000);
            await receiver.accept();
            const back = performance.now();
            await finished(count);
            return { all: lastOf(receiver.arrivals) - back };
        }),
};

/** The hour is in the rows: a breaker that has been open for as long, and first tries and retries that it held back. */
const OPEN_BREAKER = `update scanwire.exporters set
    consecutive_failures = 20, failing_since = scanwire.now() - interval '1 hour', failed_at = scanwire.now() - interval '5 minutes',
    probe_at = scanwire.now() + interval '1 hour'`;
const TRIED = `update scanwire.deliveries set
    priority = 2, attempts = 3, round = 3, queued_at = scanwire.now() - interval '25 minutes', due_at = scanwire.now() + interval '2 hours'
    where stage = 'waiting' and seq % 2 = 0`;
const PROBE = 'update scanwire.exporters set probe_at = scanwire.now()';

const receiverAway: Recovery = {
    title: 'receiver back after an hour, 10,000 deliveries waiting, half of them tried',
    figures: {
        steady: { label: 'as many to a receiver that is well, ms' },
        drained: { label: 'drained from the first success on, ms' },
        ratio: { label: 'ratio (at most 1.5)', digits: 2 },
    },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ rows, receiver, add, finished }) => {
            const count = Math.ceil(10_000 * scale);
            await add(count);
            await finished(count);
            await rows.query('analyze');

            await add(count);
            await finished(2 * count);
            const steady = durationOf(receiver.arrivals.slice(count));

            await rows.query(OPEN_BREAKER);
            await add(count);
            await rows.query(TRIED);
            await rows.query(PROBE);
            await finished(3 * count);
            const drained = durationOf(receiver.arrivals.slice(2 * count));
            return { steady, drained, ratio: drained / steady };
        }),
};

const restart: Recovery = {
    title: 'restart of serve under load, a receiver that answers after 8 s',
    figures: {
        repeated: { label: 'messages repeated (0)' },
        stop: { label: 'the stop, ms' },
    },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ receiver, add, start, finished }, served) => {
            const count = Math.ceil(100 * scale);
            receiver.answersAfter = 8_000;
            const adding = addSteadily(add, count, 200);
            await until(() => receiver.arrivals.length >= count / 2);
            const stopping = performance.now();
            await ended(served, 'SIGTERM');
            const stop = performance.now() - stopping;
            await start(...SERVE);
            await adding;
            await finished(count);
            return { repeated: repeatedTo(receiver), stop };
        }),
};

async function addSteadily(add: ServedDeployment['add'], count: number, every: number): Promise<void> {
    for (let index = 0; index < count; index += 1) {
        await Promise.all([add(1), sleep(every)]);
    }
}

/** Whatever was sent of these was in flight: an attempt that has just begun does not stand in its row. */
const UNFINISHED = `select event_id as event from scanwire.deliveries where state <> 'delivered'`;

const kill: Recovery = {
    title: 'kill -9 of serve with 1,500 of 3,000 events waiting, a receiver that takes 200 ms, started again at once',
    figures: {
        start: { label: 'the start until it says that it serves, ms' },
        others: { label: 'from then on until the others go on, ms (at most 1,000)' },
        again: { label: 'until all in flight are sent again, ms (at most 10,000)' },
        inFlight: { label: 'in flight' },
        repeated: { label: 'messages repeated (at most those in flight)' },
    },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ rows, receiver, add, start, missing, finished }, served) => {
            const count = Math.ceil(3_000 * scale);
            receiver.answersAfter = 200;
            await add(count);
            await missing(count / 2);
            await ended(served, 'SIGKILL');
            const unfinished = new Set((await rows.query<{ event: string }>(UNFINISHED)).rows.map(({ event }) => event));
            const inFlight = new Set(receiver.arrivals.map(({ event }) => event).filter((event) => unfinished.has(event)));
            const before = receiver.arrivals.length;
            const starting = performance.now();
            await start(...SERVE);
            const serving = performance.now();

            await finished(count);
            const since = receiver.arrivals.slice(before);
            return {
                start: serving - starting,
                others: firstOf(since.filter(({ event }) => !inFlight.has(event))) - serving,
                again: lastOf(since.filter(({ event }) => inFlight.has(event))) - serving,
                inFlight: inFlight.size,
                repeated: repeatedTo(receiver),
            };
        }),
};

/** How long Redis stays away: not at all, and long enough for whoever waits for it to have slowed down. */
const AWAY = 5_000;

const redisLost: Recovery = {
    title: 'Redis killed and started, or emptied, with 3,000 events and a receiver that takes 200 ms',
    figures: {
        killed: { label: 'standstill beyond the outage, started at once, ms (at most 2,000)' },
        away: { label: 'standstill beyond the outage, away for 5 s, ms (at most 2,000)' },
        emptied: { label: 'standstill when it is emptied, ms (at most 2,000)' },
        lost: { label: 'lost (0)' },
        repeated: { label: 'messages repeated' },
    },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ redis, receiver, add, missing }) => {
            const count = Math.ceil(3_000 * scale);
            const standstill = async (share: number, outage: () => Promise<unknown>): Promise<number> => {
                const before = receiver.arrivals.length;
                const began = performance.now();
                await outage();
                const away = performance.now() - began;
                await missing(count * share);
                return longestGap(receiver.arrivals.slice(before - 1)) - away;
            };
            const restartAfter = async (time: number): Promise<void> => {
                await redis.kill();
                await sleep(time);
                await redis.start();
            };
            receiver.answersAfter = 200;
            await add(count);
            await missing(count / 4);
            const killed = await standstill(1 / 2, () => restartAfter(0));
            const away = await standstill(3 / 4, () => restartAfter(AWAY));
            const emptied = await standstill(1, () => redis.command('FLUSHALL'));
            return { killed, away, emptied, lost: count - receiver.first.size, repeated: repeatedTo(receiver) };
        }),
};

const backlogMemory: Recovery = {
    title: 'a worker that sends for 20 s with 1,000,000 deliveries of 1 kB waiting',
    figures: {
        peakMiB: { label: 'most memory it held, MiB (at most 150)', digits: 1 },
        perSecond: { label: 'sent/s', moreIsBetter: true },
    },
    measure: (checkout, scale) =>
        withServed(checkout, async ({ rows, receiver, add, start }, served) => {
            await ended(served, 'SIGTERM');
            await add(Math.ceil(1_000_000 * scale));
            await rows.query('analyze');
            const { pid = 0 } = await start('worker', '--collector', 'default');
            await sleep(20_000);
            return { peakMiB: await memoryMiB(pid, 'VmHWM'), perSecond: receiver.arrivals.length / 20 };
        }),
};

function firstOf(arrivals: readonly Arrival[]): number {
    return arrivals[0]?.at ?? Number.NaN;
}

function lastOf(arrivals: readonly Arrival[]): number {
    return arrivals.at(-1)?.at ?? Number.NaN;
}

function durationOf(arrivals: readonly Arrival[]): number {
    return lastOf(arrivals) - firstOf(arrivals);
}

function repeatedTo({ arrivals, first }: ServedDeployment['receiver']): number {
    return arrivals.length - first.size;
}

function sectionOf(name: string, mostRounds: number, recoveries: readonly Recovery[]): Section {
    return {
        name,
        discarded: 0,
        mostRounds,
        open: async ({ scale }) => ({
            measurements: recoveries.map(({ measure, ...shown }) => ({
                ...shown,
                scanwire: async (checkout) => () => measure(checkout, scale),
            })),
        }),
    };
}

/** How long deliveries stand still, and what is repeated or lost, when a receiver, `serve` or Redis was away. The bars are in the labels. */
export const recovery: Section = sectionOf('recovery', 3, [receiverRefused, receiverAway, restart, kill, redisLost]);

/** What a worker holds when very many deliveries wait. */
export const backlog: Section = sectionOf('backlog', 1, [backlogMemory]);
