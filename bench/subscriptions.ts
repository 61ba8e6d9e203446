import type { Checkout } from './checkout.ts';
import type { Figure, Measurement, Run, Section } from './section.ts';
import { CPU_FIGURES, cpuSince, type HostOptions, withSender } from './senders.ts';

const EXPORTERS = 1_000;
const WARM = 2_000;
const ONE_BY_ONE = 1_000;
const AT_ONCE = 10_000;

/** Why exporters do not want an investigation. */
const UNWANTED: Readonly<Record<string, HostOptions['settings']>> = {
    'by their kinds': { kinds: ['exporter_failing'] },
    'by their filters': {
        filter: {
            all: [
                { path: 'title', op: 'contains', value: 'ransom' },
                { path: 'actors.assets.hostname', op: '=', value: 'db2.example.com' },
            ],
        },
    },
    'by their owners': { owner: 'somebody else' },
};

const FIGURES: Readonly<Record<string, Figure>> = {
    each: { label: 'a publish, one after the other, ms', digits: 2, bar: '≤ 2 ×' },
    perSecond: { label: 'events/s by 50 publishers', moreIsBetter: true },
    ...CPU_FIGURES,
};

/** What it costs to publish what exporters do not want. */
export const subscriptions: Section = {
    name: 'subscriptions',
    discarded: 0,

    async open({ own, scale }) {
        const nobody = { name: 'nobody has it', run: unwanted(own, 0, undefined, scale) };
        const exporters = Math.ceil(EXPORTERS * scale);
        return {
            measurements: Object.entries(UNWANTED).map(
                ([why, settings]): Measurement => ({
                    title: `an event that ${exporters.toLocaleString('en')} exporters do not want, ${why}`,
                    figures: FIGURES,
                    scanwire: async (checkout) => unwanted(checkout, exporters, settings, scale),
                    peers: async () => [nobody],
                }),
            ),
        };
    },
};

function unwanted(checkout: Checkout, exporters: number, settings: HostOptions['settings'] = {}, scale: number): Run {
    return () =>
        withSender({ checkout, kind: 'servers', exporters, host: { settings } }, async (sender) => {
            await sender.burst(Math.ceil(WARM * scale));
            await sender.store.analyze();
            const each = await millisecondsOf(Math.ceil(ONE_BY_ONE * scale), (count) => sender.burst(count, { publishers: 1 }));
            const cpu = await sender.cpu();
            const count = Math.ceil(AT_ONCE * scale);
            const atOnce = await millisecondsOf(count, (count) => sender.burst(count));
            return { each, perSecond: 1_000 / atOnce, ...(await cpuSince(cpu, sender, count)) };
        });
}

/** Of each of so many. */
async function millisecondsOf(count: number, task: (count: number) => Promise<void>): Promise<number> {
    const started = performance.now();
    await task(count);
    return (performance.now() - started) / count;
}
