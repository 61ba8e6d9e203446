import type { Checkout } from './checkout.ts';
import { type FilledStore, type Filling, type Known, namesOf, withFilledStore } from './filled-store.ts';
import { child } from './processes.ts';
import type { Figure, Figures, Section } from './section.ts';

const KEPT: Filling = { exporters: 1_000, deliveries: 1_000_000 };
/** The same with a hundredth of the deliveries. */
const LESS = 0.01;
const LOOKS = 40;

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString();

/** What deliveries are asked for by, by its name in the table. */
const FILTERS: Readonly<Record<string, (known: Known) => Readonly<Record<string, unknown>>>> = {
    'the newest': () => ({}),
    'from the middle on': ({ middle }) => ({ after: middle }),
    delivered: () => ({ state: 'delivered' }),
    'given up': () => ({ state: 'exhausted' }),
    waiting: () => ({ state: 'pending' }),
    held: () => ({ state: 'held' }),
    'of an exporter': ({ exporter }) => ({ exporterId: exporter }),
    'of a tenth of all exporters': ({ owned }) => ({ exporterIds: owned }),
    'of a kind': () => ({ kind: 'idr_investigation_created' }),
    'of a rare kind': () => ({ kind: 'test' }),
    'of an event': ({ event }) => ({ eventId: event }),
    'of a day': () => ({ since: daysAgo(10), until: daysAgo(9) }),
    'since yesterday': () => ({ since: daysAgo(1) }),
    'until a week ago': () => ({ until: daysAgo(7) }),
    'of an outcome': () => ({ outcome: 'server_error' }),
    'of a rare outcome': () => ({ outcome: 'gone' }),
    'given up, of an exporter': ({ exporter }) => ({ state: 'exhausted', exporterId: exporter }),
    'waiting, of a tenth of all exporters': ({ owned }) => ({ state: 'pending', exporterIds: owned }),
    'of a rare outcome, of an exporter': ({ exporter }) => ({ outcome: 'gone', exporterId: exporter }),
    'of a rare kind, of a day': () => ({ kind: 'test', since: daysAgo(10), until: daysAgo(9) }),
    'given up, of a kind, of a day': () => ({
        state: 'exhausted',
        kind: 'idr_investigation_created',
        since: daysAgo(10),
        until: daysAgo(9),
    }),
};

/** What their attempts are asked for by. */
const OF_ATTEMPTS: typeof FILTERS = {
    'attempts, the newest': () => ({}),
    'attempts of an exporter': ({ exporter }) => ({ exporterId: exporter }),
    'attempts of an outcome': () => ({ outcome: 'server_error' }),
    'attempts of a rare outcome': () => ({ outcome: 'gone' }),
    'attempts of a rare kind': () => ({ kind: 'test' }),
    'attempts of an event': ({ event }) => ({ eventId: event }),
    'attempts since yesterday': () => ({ since: daysAgo(1) }),
    'attempts since now': () => ({ since: daysAgo(0) }),
    'attempts of a frequent outcome, of an exporter': ({ exporter }) => ({ exporterId: exporter, outcome: 'server_error' }),
    'attempts of a minute': () => ({ since: daysAgo(10), until: daysAgo(10 - 1 / 1440) }),
    'attempts of an outcome, of an exporter, since yesterday': ({ exporter }) => ({
        exporterId: exporter,
        outcome: 'server_error',
        since: daysAgo(1),
    }),
};

const FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    Object.keys({ ...FILTERS, ...OF_ATTEMPTS }).flatMap((name) =>
        ['page', 'count'].map((what) => [`${what} ${name}`, { label: `${name}: ${what} p95, ms`, digits: 1, bar: '≤ 10' }]),
    ),
);

/** How long a page of deliveries takes by each of its filters, and their count, however many are kept. */
export const lists: Section = {
    name: 'lists',
    discarded: 0,
    mostRounds: 1,
    onRequest: true,

    async open({ own, scale }) {
        const filling: Filling = { exporters: Math.ceil(KEPT.exporters * scale), deliveries: Math.ceil(KEPT.deliveries * scale) };
        const less: Filling = { ...filling, deliveries: Math.ceil(filling.deliveries * LESS) };
        return {
            measurements: [
                {
                    title: `pages and counts of ${namesOf(filling)}, PostgreSQL`,
                    figures: FIGURES,
                    scanwire: async (checkout) => () => withFilledStore(checkout, filling, (filled) => listed(checkout, filled)),
                    peers: async () => [{ name: namesOf(less), run: () => withFilledStore(own, less, (filled) => listed(own, filled)) }],
                },
            ],
        };
    },
};

function listed(checkout: Checkout, { url, known }: FilledStore): Promise<Figures> {
    const [filters, ofAttempts] = [FILTERS, OF_ATTEMPTS].map((all) =>
        JSON.stringify(Object.fromEntries(Object.entries(all).map(([name, filterOf]) => [name, filterOf(known)]))),
    );
    return child(checkout, 'delivery-lists', { args: [url, String(LOOKS), String(filters), String(ofAttempts)] });
}
