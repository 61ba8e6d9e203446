import { now } from './contenders/http.ts';
import type { Measurement, Run, Section } from './section.ts';
import { deliveriesOfEach, type SenderOptions, withSender } from './senders.ts';

const EXPORTERS = 1_000;
/** Times that all exporters get an event, before those that count and then. */
const WARM = 10;
const TIMES = 20;

/** How long it takes until each of many exporters was sent an event, when each has a connection of its own. */
export const fanOut: Section = {
    name: 'fan-out',
    discarded: 0,

    async open({ own, scale }) {
        const count = Math.ceil(EXPORTERS * scale);
        const shown = count.toLocaleString('en');
        const one = { name: `${shown} events to one`, run: untilLast({ checkout: own, kind: 'servers' }, { events: count, scale }) };
        const measurement = (title: string, events: number, options: Omit<SenderOptions, 'checkout' | 'kind'>): Measurement => ({
            title,
            figures: { until: { label: 'from publish to the last arrival, ms', digits: 1, bar: '≤ 2 ×' } },
            scanwire: async (checkout) => untilLast({ checkout, kind: 'servers', exporters: count, ...options }, { events, scale }),
            peers: async () => [one],
        });
        return {
            measurements: [
                measurement(`${shown} exporters, an event of its own to each`, count, { host: { owners: count } }),
                measurement(`${shown} exporters, one event to all`, 1, {}),
            ],
        };
    },
};

interface Published {
    /** In one call. */
    readonly events: number;
    readonly scale: number;
}

/** Each exporter, or the only one, gets as much as the others. */
function untilLast(options: SenderOptions, { events, scale }: Published): Run {
    const arrivals = events * deliveriesOfEach(options);
    return () =>
        withSender(options, async (sender) => {
            const times = Math.ceil(TIMES * scale);
            let microseconds = 0;
            for (let time = -Math.ceil(WARM * scale); time < times; time += 1) {
                const published = now();
                await sender.burst(events, { publishers: 1, perCall: events });
                const arrived = await sender.finished(arrivals, { times: true });
                microseconds += time < 0 ? 0 : Math.max(...arrived.values()) - published;
            }
            return { until: microseconds / times / 1_000 };
        });
}
