import { randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { now } from './contenders/http.ts';
import { investigation } from './contenders/investigation.ts';
import type { Figure, Figures } from './section.ts';
import type { SenderUnderTest } from './senders.ts';

/** The figures of `percentilesOf`. */
export const LATENCIES: Readonly<Record<'p50' | 'p95' | 'p99', Figure>> = {
    p50: { label: 'publish to arrival p50, ms', digits: 1 },
    p95: { label: 'publish to arrival p95, ms', digits: 1 },
    p99: { label: 'publish to arrival p99, ms', digits: 1 },
};

/** Of what was published until it was at its receiver, or at the last of its receivers. */
export interface Steady {
    /** In milliseconds, in no order. */
    readonly latencies: readonly number[];
    /** From the first event to the last arrival. */
    readonly seconds: number;
}

/**
 * Publishes one event after the other, so many a second whether those before are accepted or not (an open loop), and waits until all
 * have come.
 *
 * @param exporters How many get each event.
 */
export async function steady(sender: SenderUnderTest, rate: number, count: number, exporters = 1): Promise<Steady> {
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
    const arrivals = await sender.arrived(count * exporters, { times: true });
    const latencies = [...arrivals].map(([id, at]) => (at - (sent.get(id) as number)) / 1000);
    return { latencies, seconds: (Math.max(...arrivals.values()) - Math.min(...sent.values())) / 1_000_000 };
}

/** Of what is done so many times, one after the other, in milliseconds; the first ones, which make connections and plans, do not count. */
export async function p95Of(count: number, task: () => Promise<unknown>): Promise<number> {
    const times: number[] = [];
    for (let time = -5; time < count; time += 1) {
        const begun = performance.now();
        await task();
        times.push(performance.now() - begun);
    }
    return percentilesOf(times.slice(-count)).p95 as number;
}

/** The latencies that so many per cent of all are below. */
export function percentilesOf(latencies: readonly number[]): Figures {
    const sorted = latencies.toSorted((a, b) => a - b);
    const at = (share: number): number => sorted[Math.floor((sorted.length * share) / 100)] as number;
    return { p50: at(50), p95: at(95), p99: at(99) };
}
