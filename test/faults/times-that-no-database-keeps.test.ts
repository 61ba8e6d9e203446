import t from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { SCOPES } from '../../lib/keys/scopes.ts';
import { exporterRoutes } from '../../plugins/webhook-exporter/routes.ts';
import { admin, embedded, host, register, systemOf } from '../plugins/admin-console/host.ts';

/** PostgreSQL knows no year before 4713 BC, and none that JavaScript writes with a sign is meant by anybody. */
const TIMES = ['-005000-01-01T00:00:00Z', '-271821-04-20T00:00:00Z', '+275760-09-13T00:00:00Z', '0000-12-31T23:59:59Z'];
/** The first and the last one that there is. */
const KEPT = ['0001-01-01T00:00:00Z', '9999-12-31T23:59:59.999Z'];

const EXPORTER = '00000000-0000-4000-8000-000000000000';

t.test('a time that no database keeps is refused by its field, wherever it comes in', async (t) => {
    const kept = await embedded(t);
    const server = await host({ debug: false }, kept);
    await register(server, { system: { ...systemOf(server, kept), inventory: memoryInventory() } });
    const { publish, deliveries } = server.plugins['webhook-exporter'];
    server.route(exporterRoutes({ publish, deliveries }, { prefix: '/webhook-exporter', auth: 'token' }, 1_000_000));
    const { key } = await server.plugins['token-auth'].create('all', { scopes: SCOPES });

    const queries = ['/audit', '/deliveries', '/deliveries/count', '/attempts', '/attempts/count'];
    for (const time of TIMES) {
        const inQuery = (path: string, field: string) => ['GET', `${path}?${field}=${encodeURIComponent(time)}`, undefined, field] as const;
        const asked = [
            ...queries.flatMap((path) => ['since', 'until'].map((field) => inQuery(`/admin-console${path}`, field))),
            inQuery('/webhook-exporter/deliveries', 'since'),
            inQuery('/webhook-exporter/deliveries', 'until'),
            ['POST', '/admin-console/hosts/expire', { workspace: 'default', notSeenSince: time }, 'notSeenSince'],
            ['POST', '/admin-console/replays', { exporterId: EXPORTER, failedSince: time }, 'failedSince'],
            ['POST', '/admin-console/keys', { name: 'a', expiresAt: time }, 'expiresAt'],
        ] as const;
        for (const [method, url, payload, field] of asked) {
            const answer = await server.inject({ method, url, headers: { ...admin, token: key }, ...(payload && { payload }) });
            t.equal(answer.statusCode, 400, `${method} ${url} ${time}`);
            t.match(answer.payload, new RegExp(`${field} must be (greater|less) than or equal to`));
        }
    }
    for (const time of KEPT) {
        for (const path of queries) {
            const url = `/admin-console${path}?since=${time}&until=${time}`;
            t.equal((await server.inject({ url, headers: admin })).statusCode, 200, url);
        }
    }
});
