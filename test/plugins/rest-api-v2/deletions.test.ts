import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { addressRange } from '../../../lib/address-range.ts';
import { readOnlyInventory } from '../../../lib/inventory/index.ts';
import { type Served, served } from './served.ts';

const W = '/workspaces/1/hosts';
const NINE = '2026-11-21T09:00:00.000Z';
const TEN = '2026-11-21T10:00:00.000Z';
const ELEVEN = '2026-11-21T11:00:00.500Z';
/** Of 10:00 and of 11:00 in milliseconds. */
const [AT_TEN, AT_ELEVEN] = [1_795_255_200_000, 1_795_258_800_500];

async function* list<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

/** The hosts 1 to 5, of which 2 and 3 were removed at 10:00 and 1 at 11:00; the workspace 2 is gone. */
async function deleting() {
    let now = new Date(NINE);
    const store = memoryInventory({ clock: () => now, batchSize: 2 });
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3', '192.0.2.4', '192.0.2.5'];
    await store.importHosts('default', list(addresses.map((address) => ({ address }))));
    await store.ensureWorkspace('other');
    now = new Date(TEN);
    await store.removeHosts('default', { address: addressRange('192.0.2.2-192.0.2.3') });
    await store.removeWorkspace('other');
    now = new Date(ELEVEN);
    await store.removeHosts('default', { address: addressRange('192.0.2.1') });
    const setTime = (at: string): void => {
        now = new Date(at);
    };
    return { store, setTime };
}

async function client() {
    const { store, setTime } = await deleting();
    return { ...(await served({ store })), store, setTime };
}

const [TWO, THREE, ONE] = [
    '{"id":2,"deleted_at":"2026-11-21T10:00:00+00:00"}',
    '{"id":3,"deleted_at":"2026-11-21T10:00:00+00:00"}',
    '{"id":1,"deleted_at":"2026-11-21T11:00:00+00:00"}',
];

/** Query, body, and the query of the link to the next page. */
const TOLD: readonly (readonly [query: string, body: string, next?: string])[] = [
    [`deleted_since=${NINE}`, `[${TWO},${THREE},${ONE}]`],
    ['deleted_since=2026-11-21T10:00:00Z', `[${TWO},${THREE},${ONE}]`],
    ['deleted_since=2026-11-21T10:00:00.001Z', `[${ONE}]`],
    ['deleted_since=2026-11-21T12:00:00.5+01:00', `[${ONE}]`],
    ['deleted_since=2026-11-21T12:00:00Z', '[]'],
    [`deleted_since=${NINE}&limit=1`, `[${TWO}]`, `deleted_since=${encodeURIComponent(NINE)}&limit=1&after=${AT_TEN}-2`],
    [
        `deleted_since=${NINE}&limit=1&after=${AT_TEN}-2`,
        `[${THREE}]`,
        `deleted_since=${encodeURIComponent(NINE)}&limit=1&after=${AT_TEN}-3`,
    ],
    [`deleted_since=${NINE}&limit=1&after=${AT_TEN}-3`, `[${ONE}]`],
    [`deleted_since=${NINE}&limit=3`, `[${TWO},${THREE},${ONE}]`],
    [`deleted_since=${NINE}&after=${AT_ELEVEN}-1`, '[]'],
    [`deleted_since=${ELEVEN}&after=${AT_TEN}-2`, `[${ONE}]`],
    [`deleted_since=${ELEVEN}&after=-8640000000000000-9`, `[${ONE}]`],
    [`deleted_since=${NINE}&unknown=1`, `[${TWO},${THREE},${ONE}]`],
];

t.test('tells what was deleted, and nothing else', async (t) => {
    const { get, headers } = await client();
    for (const [query, body, next] of TOLD) {
        const answer = await get(`${W}?${query}`);
        t.strictSame([answer.status, answer.body], [200, body], query);
        t.equal(answer.headers.link, next === undefined ? undefined : `</rest_api/v2${W}?${next}>; rel="next"`, query);
    }
    t.equal((await get(`/workspaces?deleted_since=${NINE}`)).body, '[{"id":2,"deleted_at":"2026-11-21T10:00:00+00:00"}]');
    t.equal((await get(`/workspaces/1/services?deleted_since=${NINE}`)).body, '[]');
    t.equal((await get(`/workspaces/9/hosts?deleted_since=${NINE}`)).status, 404);
    t.match(await get(`${W}?deleted_since=${NINE}`, { method: 'HEAD' }), { status: 200, body: '' });
    t.notMatch((await get(W)).body, 'deleted_at');
    const accept = (type: string) => get(`${W}?deleted_since=${ELEVEN}`, { headers: { ...headers, accept: type } });
    t.equal((await accept('application/x-ndjson')).body, `${ONE}\n`);
    t.equal((await accept('text/csv')).body, 'id,deleted_at\r\n1,2026-11-21T11:00:00+00:00\r\n');
    const counted = await get(`${W}?deleted_since=${NINE}`, { headers: { ...headers, prefer: 'count=exact' } });
    t.notOk('x-total-count' in counted.headers, 'they are not counted');
});

const TIME = 'deleted_since must be an ISO 8601 time with a zone, such as 2026-11-21T09:30:00Z';
const AFTER = 'after must be as the link to the next page has it: with deleted_since a time and an id';

t.test('refuses what it cannot tell, with the reason', async (t) => {
    const { get, store, setTime } = await client();
    const refused = async (path: string, status: number, message: string, ask: Served['get'] = get) => {
        const answer = await ask(path);
        t.strictSame([answer.status, JSON.parse(answer.body).message], [status, message], path);
        t.equal((await ask(path, { method: 'HEAD' })).status, status);
    };
    for (const time of ['', 'yesterday', '2026-11-21', '2026-11-21T09:00:00', '0']) {
        await refused(`${W}?deleted_since=${time}`, 400, TIME);
    }
    for (const after of ['', '5', 'x-5', '-5']) {
        await refused(`${W}?deleted_since=${NINE}&after=${after}`, 400, AFTER);
    }
    const beside = (name: string): string => `${name} cannot stand beside deleted_since: of what was deleted only id and time are known`;
    await refused(`${W}?deleted_since=${NINE}&fields=id`, 400, beside('fields'));
    await refused(`${W}?deleted_since=${NINE}&state=alive`, 400, beside('state'));
    await refused(`${W}?updated_since=${NINE}&deleted_since=${NINE}`, 400, beside('updated_since'));
    await refused(`${W}?deleted_since=${NINE}&deleted_since=${NINE}`, 400, 'deleted_since must be there once');
    await refused(`${W}?deleted_since=${NINE}&limit=0`, 400, 'limit must be a whole number from 1 to 1000');

    const gone = (at: string): string =>
        `deleted_since must not lie before ${at}: deletions are told for 90 days, so read the whole index again`;
    await refused(`${W}?deleted_since=2026-11-21T08:59:59Z`, 410, gone(NINE));
    setTime('2027-03-01T09:00:00Z');
    await refused(`${W}?deleted_since=2026-12-01T08:59:59Z`, 410, gone('2026-12-01T09:00:00.000Z'));
    t.equal((await get(`${W}?deleted_since=2026-12-01T09:00:00Z`)).body, '[]');

    const lacks = 'deleted_since cannot be met: the store of this index does not keep what was deleted';
    await refused(`${W}/4/sessions?deleted_since=${NINE}`, 400, lacks);
    const reading = readOnlyInventory({ workspaces: () => [], hosts: () => [] });
    await refused(`${W}?deleted_since=${NINE}`, 400, lacks, (await served({ store: reading })).get);
    const { select } = store.hosts.deletions as NonNullable<typeof store.hosts.deletions>;
    const down = { ...store.hosts, deletions: { since: () => Promise.reject(new Error('down')), select } };
    t.equal((await (await served({ store: { ...store, hosts: down } })).get(`${W}?deleted_since=${NINE}`)).status, 503);
});

t.test('tells nothing below what is not there any more', async (t) => {
    const { get, store } = await client();
    const services = [{ port: 443, proto: 'tcp', state: 'open', name: 'https', info: null }] as const;
    const { id } = (await store.importHosts('third', list([{ address: '192.0.2.9', services }]))).workspace;
    await store.importHosts('third', list([{ address: '192.0.2.9', services: [] }]), { replace: true });
    const below = `/workspaces/${id}/hosts`;
    t.match(await get(`${below}/6/services?deleted_since=${NINE}`), { status: 200, body: /"id":1,/ });
    await store.removeHosts('third', {});
    t.equal((await get(`${below}/6/services?deleted_since=${NINE}`)).status, 404);
    t.match(await get(`${below}?deleted_since=${NINE}`), { status: 200, body: /"id":6,/ });
    await store.removeWorkspace('third');
    for (const method of ['GET', 'HEAD']) {
        t.equal((await get(`${below}?deleted_since=${NINE}`, { method })).status, 404, method);
        t.equal((await get(`${below}?deleted_since=2020-01-01T00:00:00Z`, { method })).status, 404, method);
    }
});

t.test('tells a key of some workspaces of these alone', async (t) => {
    const { get, server, store, setTime } = await client();
    await store.ensureWorkspace('third');
    setTime('2026-11-21T12:00:00Z');
    await store.removeWorkspace('third');
    const { key } = await server.plugins['token-auth'].create('some', { workspaces: [1, 3] });
    const ask = (path: string) => get(path, { headers: { token: key } });
    t.equal((await ask(`/workspaces?deleted_since=${NINE}&limit=1`)).body, '[{"id":3,"deleted_at":"2026-11-21T12:00:00+00:00"}]');
    t.equal((await ask(`${W}?deleted_since=${ELEVEN}`)).body, `[${ONE}]`);
    t.equal((await ask(`/workspaces/2/hosts?deleted_since=${NINE}`)).status, 404);
});

t.test('forgets deletions after 90 days, and a day', async (t) => {
    const { store, setTime } = await client();
    const told = async (): Promise<number[]> => {
        const ids: number[] = [];
        for await (const batch of store.hosts.deletions?.select([1], { since: new Date(0) }) ?? []) {
            ids.push(...batch.map(({ id }) => id));
        }
        return ids;
    };
    setTime('2027-02-20T10:00:00Z');
    await store.removeHosts('default', { address: addressRange('192.0.2.4') });
    t.same(await told(), [2, 3, 1, 4]);
    setTime('2027-02-20T10:00:00.001Z');
    await store.removeHosts('default', { address: addressRange('192.0.2.5') });
    t.same(await told(), [1, 4, 5]);
});
