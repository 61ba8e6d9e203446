import { request } from 'undici';
import { type FilledStore, type Filling, type Known, namesOf, withFilledStore } from './filled-store.ts';
import type { Figure, Figures, Section } from './section.ts';
import { p95Of } from './steady.ts';

const EXPORTERS = 1_000;
const DELIVERIES = 1_000_000;
const LOOKS = 40;

const dayAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 16);

/** The pages that are looked at, by their names in the table. */
const PAGES: Readonly<Record<string, (known: Known) => string>> = {
    overview: () => '/admin/overview',
    keys: () => '/admin/keys',
    exporters: () => '/admin/exporters',
    'exporters, the last ones': ({ late }) => `/admin/exporters?after=${late}`,
    'an exporter': ({ exporter }) => `/admin/exporters/${exporter}`,
    'its form': ({ exporter }) => `/admin/exporters/${exporter}/edit`,
    deliveries: () => '/admin/deliveries',
    'deliveries, in the middle': ({ middle }) => `/admin/deliveries?after=${middle}`,
    'of an exporter': ({ exporter }) => `/admin/deliveries?exporterId=${exporter}`,
    'given up': () => '/admin/deliveries?state=exhausted',
    'waiting, of an exporter': ({ exporter }) => `/admin/deliveries?state=pending&exporterId=${exporter}`,
    'of an outcome': () => '/admin/deliveries?outcome=server_error',
    'of a rare outcome': () => '/admin/deliveries?outcome=gone',
    'of a kind': () => '/admin/deliveries?kind=idr_investigation_created',
    'of a rare kind': () => '/admin/deliveries?kind=test',
    'of an event': ({ event }) => `/admin/deliveries?eventId=${event}`,
    'of a day': () => `/admin/deliveries?since=${dayAgo(10)}&until=${dayAgo(9)}`,
    'a delivery': ({ delivery }) => `/admin/deliveries/${delivery}`,
    activity: () => '/admin/deliveries/activity',
    'activity of an exporter': ({ exporter }) => `/admin/deliveries/activity?exporterId=${exporter}`,
    replays: () => '/admin/deliveries/replays',
    audit: () => '/admin/audit',
    'exporters of an owner': () => '/webhooks/exporters',
    'deliveries of an owner': () => '/webhooks/deliveries',
    'activity of an owner': () => '/webhooks/deliveries/activity',
};

const FIGURES: Readonly<Record<string, Figure>> = Object.fromEntries(
    Object.keys(PAGES).map((name) => [name, { label: `${name} p95, ms`, digits: 1, bar: '≤ 100' }]),
);

/** How long the pages of the screens take, when there is much to show. */
export const screens: Section = {
    name: 'screens',
    discarded: 0,
    mostRounds: 1,
    onRequest: true,

    async open({ scale }) {
        const filling: Filling = { exporters: Math.ceil(EXPORTERS * scale), deliveries: Math.ceil(DELIVERIES * scale) };
        return {
            measurements: [
                {
                    title: `pages of ${namesOf(filling)}, PostgreSQL`,
                    figures: FIGURES,
                    scanwire: async (checkout) => () => withFilledStore(checkout, filling, lookAt),
                },
            ],
        };
    },
};

async function lookAt({ origin, known }: FilledStore): Promise<Figures> {
    const figures: Record<string, number> = {};
    for (const [name, pathOf] of Object.entries(PAGES)) {
        figures[name] = await p95Of(LOOKS, () => look(origin + pathOf(known)));
    }
    return figures;
}

/** Until the whole page is there. */
async function look(url: string): Promise<void> {
    const { statusCode, body } = await request(url);
    const text = await body.text();
    if (statusCode !== 200 || !text.includes('</html>')) {
        throw new Error(`${url} was answered with ${statusCode}: ${text.slice(0, 500)}`);
    }
}
