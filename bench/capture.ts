import { background, child } from './processes.ts';
import type { Section } from './section.ts';

const ENDPOINTS = 2_000;

/** Local endpoints, 100 at a time, by `captureRecords` and by a bare `tls.connect` loop. */
export const capture: Section = {
    name: 'capture',
    discarded: 1,

    async open({ own, scale }) {
        const count = Math.ceil(ENDPOINTS * scale);
        const endpoints = await background(own, 'endpoints');
        const args = [endpoints.firstLine, String(count)];
        return {
            measurements: [
                {
                    title: `capture of ${count.toLocaleString('en')} endpoints, 100 at a time`,
                    figures: {
                        perSecond: { label: 'records/s', moreIsBetter: true },
                        cpu: { label: 'CPU, µs a record' },
                        peakMiB: { label: 'peak memory, MiB' },
                    },
                    scanwire: async (checkout) => () => child(checkout, 'capture-endpoints', { args: ['captured', ...args] }),
                    peers: async () => [{ name: 'tls.connect', run: () => child(own, 'capture-endpoints', { args: ['bare', ...args] }) }],
                },
            ],
            close: endpoints.stop,
        };
    },
};
