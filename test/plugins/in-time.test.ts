import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import Hapi from '@hapi/hapi';
import { WebStandardStreamableHTTPServerTransport as Transport } from '@modelcontextprotocol/sdk/server/webStandardStreamableHttp.js';
import t from 'tap';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import type { WholeInventory } from '../../plugins/metasploit-data/index.ts';
import { freeTime, holdTime, pass, timed, timeIsFree, wait } from '../support/passing-time.ts';
import { served as dataService, filled } from './metasploit-data/data-service.ts';
import { type Served, served } from './rest-api-v2/served.ts';

const AN_HOUR = 3_600_000;
const UNREADABLE = 'The data cannot be read now; try again later';

async function* oneHost(): AsyncGenerator<HostInput> {
    yield { address: '192.0.2.1' };
}

const COLLECTIONS = ['workspaces', 'hosts', 'workspaceServices', 'workspaceVulns', 'workspaceNotes', 'workspaceSessions'] as const;

/** A store of which every answer takes so many milliseconds, and its listings that have begun and not ended: of nothing, or of one host again and again. */
async function slowStore(milliseconds: number, isEndless = false): Promise<{ readonly store: InventoryStore; open(): number }> {
    const memory = memoryInventory();
    await memory.importHosts('default', oneHost());
    const host = await memory.hosts.get([1], 1);
    let open = 0;
    const slow = (rows: typeof memory.hosts) => ({
        ...rows,
        async get(parents: readonly number[], id: number) {
            await wait(milliseconds);
            return await rows.get(parents, id);
        },
        async count() {
            await wait(milliseconds);
            return 0;
        },
        async *list() {
            open += 1;
            try {
                await wait(milliseconds);
                while (isEndless) {
                    yield [host];
                }
                yield [];
            } finally {
                open -= 1;
            }
        },
        async *select() {
            await wait(milliseconds);
            yield [];
        },
        deletions: {
            ...rows.deletions,
            async since() {
                await wait(milliseconds);
                return new Date(0);
            },
            async *select() {
                await wait(milliseconds);
                yield [];
            },
        },
    });
    const store = Object.fromEntries(
        COLLECTIONS.map((name) => [name, slow(memory[name] as typeof memory.hosts)]),
    ) as unknown as InventoryStore;
    return { store, open: () => open };
}

async function asked(running: Served, path: string, headers: Record<string, string> = {}, method = 'GET') {
    return await timed(running.get(path, { method, headers: { ...running.headers, ...headers } }));
}

/** Rows of which one comes each second, and only the last is wanted. */
const slowly = {
    get: async () => null,

    async *list() {
        for (let id = 1; id <= 30; id += 1) {
            await wait(1_000);
            yield [{ id, host_id: 1, name: id === 30 ? 'wanted' : 'other' }];
        }
    },
};

/* Files that are run by one process share what stands outermost. */
t.test('answers in time', async (t) => {
    await timeIsFree();
    t.beforeEach(holdTime);
    t.afterEach(freeTime);

    t.test('what a slow store is asked for in a row is a 503 in less than 10 s, and an answer where it comes in time', async (t) => {
        const running = await served({ store: (await slowStore(4_000)).store });
        const exact = { prefer: 'count=exact' };
        for (const [path, headers, status, atLeast] of [
            ['/workspaces', {}, 200, 4_000],
            ['/workspaces/1', {}, 200, 4_000],
            ['/workspaces/1/hosts', {}, 200, 8_000],
            ['/workspaces/1/hosts/7', {}, 404, 4_000],
            ['/workspaces/1/hosts', exact, 503, 9_000],
            ['/workspaces/1/hosts?limit=5', exact, 503, 9_000],
            ['/workspaces/1/hosts?deleted_since=2026-11-20T00:00:00Z', {}, 503, 9_000],
        ] as const) {
            const { status: given, took } = await asked(running, path, headers);
            t.equal(given, status, path);
            t.ok(took >= atLeast && took < 10_000, `${path}: after ${took} ms`);
        }
    });

    t.test('a clock that is set meanwhile, an hour back or forth, takes and gives no time', async (t) => {
        const running = await served({ store: (await slowStore(4_000)).store });
        for (const hours of [-1, 1]) {
            const asking = asked(running, '/workspaces/1/hosts', { prefer: 'count=exact' });
            await turn();
            const set = Date.now.bind(Date);
            const clock = mock.method(Date, 'now', () => set() + hours * 3_600_000);
            const { status, took } = await asking;
            clock.mock.restore();
            t.equal(status, 503);
            t.ok(took >= 9_000 && took < 10_000, `after ${took} ms`);
        }
    });

    t.test('a whole index that does not begin is a 503 in less than 10 s, and its reading is ended', async (t) => {
        const { store, open } = await slowStore(30_000, true);
        const { status, took } = await asked(await served({ store }), '/workspaces/1/hosts');
        t.equal(status, 503);
        t.ok(took >= 9_000 && took < 10_000, `after ${took} ms`);
        t.equal(open(), 1, 'a store may take no notice of the signal');
        pass(30_000);
        while (open() > 0) {
            await turn();
        }
    });

    t.test('a page, and a count, that do not come are a 503 in less than 10 s', async (t) => {
        const running = await served({ store: (await slowStore(30_000)).store });
        for (const [path, headers] of [
            ['/workspaces/1/hosts?limit=1000', {}],
            ['/workspaces/1/hosts', { prefer: 'count=exact' }],
        ] as const) {
            const { status, took } = await asked(running, path, headers);
            t.equal(status, 503, path);
            t.ok(took >= 9_000 && took < 10_000, `${path}: after ${took} ms`);
        }
    });

    t.test('a row that does not come is a 503 in less than 10 s, and so is what is below it', async (t) => {
        const running = await served({ store: (await slowStore(AN_HOUR)).store });
        for (const method of ['GET', 'HEAD']) {
            for (const path of ['/workspaces', '/workspaces/1', '/workspaces/1/hosts/1', '/workspaces/1/hosts']) {
                const { status, took } = await asked(running, path, {}, method);
                t.equal(status, 503, `${method} ${path}`);
                t.ok(took >= 9_000 && took < 10_000, `${method} ${path}: after ${took} ms`);
            }
        }
    });

    t.test('the data service of a store that does not answer is a 503 in less than 10 s', async (t) => {
        const more = { loots: () => new Promise<never>(() => {}) };
        const { ask: asking, server, create } = await dataService({ store: (await slowStore(AN_HOUR)).store as WholeInventory, more });
        const { key: bearer } = await create('reads secrets', { scopes: ['inventory:read', 'secrets:read'] });
        const ask = (path: string, sent: object = {}) => asking(path, { ...sent, bearer });
        const lost: unknown[] = [];
        server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => lost.push((error as { code?: unknown }).code));
        const paths = ['/workspaces', '/workspaces/1', '/hosts', '/hosts/1', '/services', '/notes/1', '/loots', '/loots/1'];
        for (const path of paths) {
            const { status, answer, took } = await timed(ask(path));
            t.same([status, answer?.body], [503, { error: { code: 503, message: UNREADABLE } }], path);
            t.ok(took >= 9_000 && took < 10_000, `${path}: after ${took} ms`);
        }
        for (const method of ['db.hosts', 'db.vulns', 'db.loots']) {
            const { status, took } = await timed(
                ask('/json-rpc', { method: 'POST', payload: { jsonrpc: '2.0', id: 1, method, params: [{}] } }),
            );
            t.equal(status, 503, method);
            t.ok(took >= 9_000 && took < 10_000, `${method}: after ${took} ms`);
        }
        t.same(lost, Array(paths.length + 3).fill('UNAVAILABLE'));
    });

    t.test('the data service reads on for what is found late, as long as the store answers', async (t) => {
        const { ask } = await dataService({ store: { ...(await filled()), hosts: slowly, workspaceServices: slowly } as never });
        for (const path of ['/hosts?search_term=wanted', '/services?search_term=wanted']) {
            const { status, answer, took } = await timed(ask(path));
            t.equal(status, 200, path);
            t.match(answer?.body, { data: [{ id: 30, name: 'wanted' }] });
            t.equal(answer?.body.data.length, 1);
            t.ok(took > 30_000, `${path}: after ${took} ms`);
        }
    });

    t.test('a tool of a store that does not answer says so in less than 10 s', async (t) => {
        const server = Hapi.server({ debug: false });
        const { store } = await slowStore(AN_HOUR);
        await server.register({ plugin: mcp, options: { store, license: alwaysLicensed(), auth: false } });
        const post = async (method: string, params: object) => {
            const headers = { accept: 'application/json, text/event-stream' };
            const payload = { jsonrpc: '2.0', id: 1, method, params };
            const { statusCode: status, payload: text } = await server.inject({ method: 'POST', url: '/mcp', headers, payload });
            return { status, result: JSON.parse(text).result };
        };
        t.match(await post('tools/list', {}), { status: 200 }, 'the first request loads the protocol, however long it takes');
        for (const name of ['workspaces', 'hosts']) {
            const { answer, took } = await timed(post('tools/call', { name, arguments: {} }));
            t.match(answer, { status: 200, result: { isError: true, content: [{ text: UNREADABLE }] } }, name);
            t.ok(took >= 9_000 && took < 10_000, `${name}: after ${took} ms`);
        }
    });

    t.test('a request that is never answered by what speaks the protocol is a 503 in less than 10 s', async (t) => {
        const server = Hapi.server({ debug: false });
        await server.register({ plugin: mcp, options: { store: memoryInventory(), license: alwaysLicensed(), auth: false } });
        const lost: unknown[] = [];
        server.events.on({ name: 'request', channels: 'app' }, (_, { error }) => lost.push((error as { code?: unknown }).code));
        const post = async () => {
            const headers = { accept: 'application/json, text/event-stream' };
            const payload = { jsonrpc: '2.0', id: 1, method: 'ping' };
            const { statusCode: status, payload: text } = await server.inject({ method: 'POST', url: '/mcp', headers, payload });
            return { status, body: JSON.parse(text) };
        };
        t.match(await post(), { status: 200 });
        const silent = mock.method(Transport.prototype, 'send', async () => {});
        t.teardown(() => silent.mock.restore());
        const { answer, took } = await timed(post());
        t.match(answer, { status: 503, body: { jsonrpc: '2.0', error: { code: -32_603, message: UNREADABLE }, id: null } });
        t.ok(took >= 9_000 && took < 10_000, `after ${took} ms`);
        t.same(lost, ['UNAVAILABLE']);
    });

    t.test('what requests ask for shares one timer', async (t) => {
        const running = await served({ store: (await filled()) as InventoryStore });
        const timers = mock.method(globalThis, 'setTimeout');
        for (const path of ['/workspaces/1', '/workspaces/1/hosts/1']) {
            t.match(await running.get(path), { status: 200 });
        }
        t.equal(timers.mock.callCount(), 1);
    });
});
