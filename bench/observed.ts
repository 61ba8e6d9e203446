import type { Load } from './deliveries.ts';
import { figuresOfBoth, fullSpeedAndPace } from './overhead.ts';
import type { Peer, Section } from './section.ts';
import type { HostOptions } from './senders.ts';

const LOAD: Load = { warmUp: 10_000, counted: 40_000 };

const CASES: Readonly<Record<string, NonNullable<HostOptions['watched']>>> = {
    'metrics, scraped each second, and spans': ['metrics', 'spans'],
    'metrics alone': ['metrics'],
    'spans alone': ['spans'],
};

/** What it costs to be watched. */
export const observed: Section = {
    name: 'observed',
    discarded: 0,

    async open({ own, scale }) {
        const off: Peer = { name: 'neither', run: fullSpeedAndPace({ checkout: own, kind: 'servers' }, LOAD, scale) };
        return {
            measurements: Object.entries(CASES).map(([title, watched]) => ({
                title: `deliveries with ${title}`,
                figures: figuresOfBoth(watched.length === 2 ? { perSecond: '≥ 0.9 ×' } : {}),
                scanwire: async (checkout) => fullSpeedAndPace({ checkout, kind: 'servers', host: { watched } }, LOAD, scale),
                peers: async () => [off],
            })),
        };
    },
};
