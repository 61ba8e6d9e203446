import { setTimeout as sleep } from 'node:timers/promises';
import type { Arrival } from './arrivals.ts';
import type { Checkout } from './checkout.ts';
import type { Figures, Measurement, Section } from './section.ts';
import { withServed } from './served-deployment.ts';

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

function lastOf(arrivals: readonly Arrival[]): number {
    return arrivals.at(-1)?.at ?? Number.NaN;
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
export const recovery: Section = sectionOf('recovery', 3, [receiverRefused]);
