import type { Checkout } from './checkout.ts';
import { stretchOf, warmUp } from './pace.ts';
import type { Figure, Figures, Run, Section } from './section.ts';
import { CPU_FIGURES, type SenderKind, withSender } from './senders.ts';
import { LATENCIES } from './steady.ts';

/** Milliseconds from the sender to each of its servers: in the next building, in the next town. */
const DISTANCES: readonly number[] = [1, 5];
const STRETCH = { rate: 100, seconds: 8 };
const WARM = 1_000;

const FIGURES: Readonly<Record<string, Figure>> = {
    ...Object.fromEntries(Object.entries(LATENCIES).map(([name, figure]) => [name, { ...figure, bar: '≤ 1.4 ×' }])),
    ...CPU_FIGURES,
};

/** How much later events arrive where Redis and PostgreSQL are on other machines: each call to them then takes its time. */
export const distant: Section = {
    name: 'distant',
    discarded: 0,

    async open({ own, scale }) {
        return {
            measurements: DISTANCES.map((distance) => ({
                title: `${STRETCH.rate} events/s, both servers ${distance} ms away; floor: BullMQ + undici and two prepared statements`,
                figures: FIGURES,
                scanwire: async (checkout) => at(checkout, 'servers', distance, scale),
                peers: async () => [{ name: 'floor', run: at(own, 'floor', distance, scale) }],
            })),
        };
    },
};

function at(checkout: Checkout, kind: SenderKind, distance: number, scale: number): Run {
    return () =>
        withSender({ checkout, kind, distance }, async (sender): Promise<Figures> => {
            await warmUp(sender, Math.ceil(WARM * scale));
            return stretchOf(sender, STRETCH, scale);
        });
}
