import { figuresWith, fullSpeed, type Load } from './deliveries.ts';
import type { Peer, Section } from './section.ts';

const LOAD: Load = { warmUp: 10_000, counted: 10_000 };
const KEYS = 1_000;

/** What it costs that the messages of a key go one after another. */
export const order: Section = {
    name: 'order',
    discarded: 0,

    async open({ own, scale }) {
        const unordered: Peer = { name: 'unordered', run: fullSpeed({ checkout: own, kind: 'servers' }, LOAD, scale) };
        const keys = Math.ceil(KEYS * scale);
        return {
            measurements: [
                {
                    title: `deliveries, ordered: ${LOAD.counted.toLocaleString('en')} messages over ${KEYS.toLocaleString('en')} order keys`,
                    figures: figuresWith({ perSecond: '≥ 0.6 ×' }),
                    scanwire: async (checkout) => fullSpeed({ checkout, kind: 'servers', host: { orderKeys: keys } }, LOAD, scale),
                    peers: async () => [unordered],
                },
            ],
        };
    },
};
