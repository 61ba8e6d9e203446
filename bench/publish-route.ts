import { testDatabase } from '../test/support/test-database.ts';
import type { Checkout } from './checkout.ts';
import { investigation } from './contenders/investigation.ts';
import { asked, FIGURES, type Requests, servers } from './host-requests.ts';
import { type Measurement, ofEach, type Run, type Section, withBars } from './section.ts';

const COUNT = 8_000;
const CLIENTS: readonly number[] = [8, 50];

/** `POST /webhook-exporter/events`, beside a route of hapi that checks a key and publishes: each on a database of its own, from which nothing is sent. */
export const publishRoute: Section = {
    name: 'publish-route',
    discarded: 1,

    async open({ own, scale }) {
        const { serving, close } = servers();
        const started = (way: 'route' | 'bare') =>
            ofEach(async (checkout) => {
                const database = await testDatabase();
                return { ...database, server: await serving(checkout, 'publish-route', [way, database.url]) };
            });
        const [route, bare] = [started('route'), started('bare')];
        const run = async (way: typeof route, checkout: Checkout, requests: Requests): Promise<Run> =>
            asked((await way.of(checkout)).server, requests, scale);
        return {
            measurements: CLIENTS.map((clients): Measurement => {
                const requests: Requests = { count: COUNT, clients, path: () => '', body };
                return {
                    title: `POST /webhook-exporter/events, ${clients} clients`,
                    figures: withBars(FIGURES, { perSecond: '≥ 0.9 ×', server: '≤ 1.15 ×' }),
                    scanwire: (checkout) => run(route, checkout, requests),
                    peers: async () => [{ name: 'bare hapi with a check of keys that publishes', run: await run(bare, own, requests) }],
                };
            }),

            async close() {
                await close();
                const databases = [...(await route.all()), ...(await bare.all())];
                await Promise.all(databases.map(({ drop }) => drop()));
            },
        };
    },
};

function body(): string {
    return JSON.stringify({ kind: 'idr_investigation_created', body: investigation() });
}
