import type { Checkout } from './checkout.ts';
import { investigation } from './contenders/investigation.ts';
import type { Burst } from './contenders/sender-server.ts';
import { figuresWith, fullSpeed, type Load } from './deliveries.ts';
import { warmUp } from './pace.ts';
import type { Figure, Measurement, Run, Section } from './section.ts';
import { cpuSince, type SenderKind, type SenderOptions, withSender } from './senders.ts';

const LOAD = { warmUp: 10_000, counted: 40_000 };
/** As many as `publishAll` takes. */
const IN_BULK: Burst = { publishers: 1, perCall: 1_000 };

/** Milliseconds one way, so far that what else a transaction takes is little beside its round trips. */
const DISTANCE = 25;
const TRANSACTIONS = 20;

const TRIPS: Readonly<Record<string, Figure>> = {
    alone: { label: 'round trips of a publish', digits: 1 },
    joined: { label: 'that a publish adds to a transaction of the host', digits: 1 },
    extra: { label: 'more than alone', digits: 1, bar: '≤ 1' },
};

/** What it takes to accept many events, and to accept one in a transaction of the host. */
export const bulk: Section = {
    name: 'bulk',
    discarded: 0,

    async open({ own, scale }) {
        const measurement = (title: string, run: (checkout: Checkout, kind: SenderKind, load: Load) => Run): Measurement => ({
            title: `events accepted by publishAll, 1,000 a call, ${title}`,
            figures: figuresWith({ acceptedPerSecond: '≥ 10,000' }),
            scanwire: async (checkout) => run(checkout, 'servers', { ...LOAD, how: IN_BULK }),
            peers: async () => [
                { name: '50 publishers, an event a call', run: run(own, 'servers', LOAD) },
                { name: 'floor: an INSERT of 1,000', run: run(own, 'floor', { ...LOAD, how: IN_BULK }) },
            ],
        });
        return {
            measurements: [
                measurement('while nothing is sent', (checkout, kind, load) =>
                    accepting({ checkout, kind, host: { paused: true } }, load, scale),
                ),
                measurement('and sent meanwhile', (checkout, kind, load) => fullSpeed({ checkout, kind }, load, scale)),
                {
                    title: `a publish in a transaction of the host, both servers ${DISTANCE} ms away`,
                    figures: TRIPS,
                    scanwire: async (checkout) => joining({ checkout, kind: 'servers', distance: DISTANCE }, scale),
                },
            ],
        };
    },
};

/** Of events whose deliveries stay in their rows. */
function accepting(options: SenderOptions, { warmUp, counted, how }: Load, scale: number): Run {
    const count = Math.ceil(counted * scale);
    return () =>
        withSender(options, async (sender) => {
            await sender.burst(Math.ceil(warmUp * scale), how);
            await sender.store.analyze();
            const cpu = await sender.cpu();
            const started = performance.now();
            await sender.burst(count, how);
            const acceptedPerSecond = (count * 1000) / (performance.now() - started);
            return { acceptedPerSecond, ...(await cpuSince(cpu, sender, count)), peakMiB: await sender.peakMiB() };
        });
}

function joining(options: SenderOptions, scale: number): Run {
    return () =>
        withSender(options, async (sender) => {
            const count = Math.ceil(TRANSACTIONS * scale);
            await warmUp(sender, Math.ceil(200 * scale));
            const alone = await tripsOf(count, () => sender.publish(investigation()));
            const empty = await tripsOf(count, () => sender.publishInTransaction(null, 0));
            const joined = (await tripsOf(count, () => sender.publishInTransaction(investigation(), 0))) - empty;
            return { alone, joined, extra: joined - alone };
        });
}

/** The least that it takes, in round trips to a server. */
async function tripsOf(count: number, task: () => Promise<unknown>): Promise<number> {
    const times: number[] = [];
    for (let done = 0; done < count; done += 1) {
        const begun = performance.now();
        await task();
        times.push(performance.now() - begun);
    }
    return Math.min(...times) / (2 * DISTANCE);
}
