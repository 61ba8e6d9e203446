import type { Figure, Figures, Measurement, Run, Section } from './section.ts';
import { CPU_FIGURES, cpuSince, type SenderOptions, withSender } from './senders.ts';

/** How many go before those that count: until V8 has compiled what is hot, a delivery costs twice as much. */
interface Load {
    readonly warmUp: number;
    readonly counted: number;
}

const SERVERS: Load = { warmUp: 10_000, counted: 40_000 };
const EMBEDDED: Load = { warmUp: 500, counted: 3_000 };

const FIGURES: Readonly<Record<string, Figure>> = {
    perSecond: { label: 'deliveries/s, until the last outcome is recorded', moreIsBetter: true },
    acceptedPerSecond: { label: 'events accepted/s', moreIsBetter: true },
    ...CPU_FIGURES,
    peakMiB: { label: 'peak memory of the process, MiB' },
};

/** As many deliveries as there can be, all to one exporter. */
export const deliveries: Section = {
    name: 'deliveries',
    discarded: 0,

    async open({ own, scale }) {
        const bare = { name: 'BullMQ + undici, no rows', run: fullSpeed({ checkout: own, kind: 'bare' }, SERVERS, scale) };
        const measurement = (title: string, options: Omit<SenderOptions, 'checkout'>, load: Load): Measurement => ({
            title,
            figures: FIGURES,
            scanwire: async (checkout) => fullSpeed({ checkout, ...options }, load, scale),
            peers: async () => [bare],
        });
        return {
            measurements: [
                measurement('deliveries, Redis + PostgreSQL, default options', { kind: 'servers' }, SERVERS),
                measurement('deliveries, Redis + PostgreSQL, window 200', { kind: 'servers', window: 200 }, SERVERS),
                measurement('deliveries, embedded, default options', { kind: 'embedded' }, EMBEDDED),
            ],
        };
    },
};

function fullSpeed(options: SenderOptions, load: Load, scale: number): Run {
    const [warmUp, counted] = [load.warmUp, load.counted].map((count) => Math.ceil(count * scale)) as [number, number];
    return () =>
        withSender(options, async (sender): Promise<Figures> => {
            await sender.burst(warmUp);
            await sender.finished(warmUp);
            const before = await sender.cpu();
            const started = performance.now();
            await sender.burst(counted);
            const accepted = performance.now();
            await sender.finished(counted);
            const recorded = performance.now();
            return {
                perSecond: (counted * 1000) / (recorded - started),
                ...(options.kind !== 'bare' && { acceptedPerSecond: (counted * 1000) / (accepted - started) }),
                ...(await cpuSince(before, sender, counted)),
                peakMiB: await sender.peakMiB(),
            };
        });
}
