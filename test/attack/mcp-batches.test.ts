import Hapi from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { memoryRecords } from '../../adapters/memory/records.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { type McpOptions, plugin as mcp } from '../../plugins/mcp/index.ts';
import { toolsOf } from '../../plugins/mcp/tools.ts';

/*
 * What one request to the endpoint of assistants costs must be bounded, whatever its batch says: a call that cancels itself once was never
 * answered, and 9 KB of calls once took half a gigabyte.
 */

async function served(t: Test, options: Partial<McpOptions> = {}) {
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: mcp, options: { store: memoryInventory(), license: alwaysLicensed(), auth: false, ...options } });
    t.teardown(() => server.stop());
    const post = async (payload: object) => {
        const headers = { accept: 'application/json, text/event-stream' };
        const { statusCode, payload: text } = await server.inject({ method: 'POST', url: '/mcp', headers, payload });
        return { status: statusCode, text, answer: JSON.parse(text) };
    };
    return { server, post };
}

t.test('answers what is cancelled by its own batch', { timeout: 20_000 }, async (t) => {
    const { post } = await served(t);
    const cancelled = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'workspaces', arguments: {} } };
    t.match(await post([{ jsonrpc: '2.0', id: 1, method: 'ping' }, cancelled(1)]), { status: 200, answer: { id: 1, result: {} } });
    const { answer } = await post([cancelled('a'), { ...call, id: 'a' }, { ...call, id: 'b' }, cancelled('a'), cancelled('b')]);
    t.match(answer, [
        { id: 'a', result: { structuredContent: { rows: [] } } },
        { id: 'b', result: { structuredContent: { rows: [] } } },
    ]);
});

const MIB = 1_048_576;
const ROOM = /^The answer has no room for more rows: call .* in a request of its own/;
const FULL = 'Too many indexes are being read; try again later';

async function* oneHost(): AsyncGenerator<{ readonly address: string }> {
    yield { address: '192.0.2.1' };
}

/** An inventory with so many notes of so many bytes, which are as long as they can be once they are escaped twice. */
async function noted(count: number, bytes: number) {
    const store = memoryInventory();
    await store.importHosts('default', oneHost());
    for (let id = 1; id <= count; id += 1) {
        await store.addNote(1, { ntype: 'x', data: { text: '"'.repeat(bytes / 2) } });
    }
    return store;
}

interface Called {
    readonly id: number;
    readonly result: {
        readonly isError?: true;
        readonly content: readonly [{ readonly text: string }];
        readonly structuredContent?: { readonly rows: readonly { readonly id: number | string }[]; readonly cursor: string | null };
    };
}

const toCall = (name: string, input: object = {}, id = 1) => {
    return { jsonrpc: '2.0', id, method: 'tools/call', params: { name, arguments: input } };
};

t.test('answers a batch with a mebibyte of rows and no more, and says of the other calls that they are to be made alone', async (t) => {
    const { post } = await served(t, { store: await noted(100, 5_000) });
    const { status, text, answer } = await post(Array.from({ length: 100 }, (_, id) => toCall('notes', {}, id)));
    const results = (answer as Called[]).map(({ result }) => result);
    t.match([status, results.length], [200, 100]);
    t.ok(text.length < 4 * MIB, `${text.length} characters`);
    const rows = results.flatMap(({ structuredContent }) => structuredContent?.rows ?? []);
    const size = JSON.stringify(rows).length;
    t.ok(size > MIB - 10_000 && size <= MIB, `${size} characters of rows`);
    t.equal(results[0]?.structuredContent?.rows.length, 100);
    t.same(
        results.map(({ isError = false }) => isError),
        results.map((_, index) => index > 2),
    );
    t.ok(results.slice(3).every(({ content: [{ text: reason }] }) => ROOM.test(reason)));
});

t.test('loses no row where pages are short, and shows one that is larger than all the room', async (t) => {
    const store = await noted(150, 20_000);
    await store.addNote(1, { ntype: 'x', data: { text: 'x'.repeat(2 * MIB) } });
    await store.addNote(1, { ntype: 'x' });
    const deliveries = Array.from({ length: 152 }, (_, index) => ({
        id: String(index + 1),
        title: 'x'.repeat(index === 150 ? 2 * MIB : 20_000),
    }));
    const list = async ({ after = '0', limit = 100 } = {}) => deliveries.slice(Number(after), Number(after) + limit);
    const { post } = await served(t, { store, deliveries: { list } as never });
    for (const name of ['notes', 'deliveries']) {
        const ids: number[] = [];
        const lengths: number[] = [];
        for (let cursor: string | null | undefined; cursor !== null; ) {
            const { answer } = await post(toCall(name, cursor === undefined ? {} : { cursor }));
            const { rows, cursor: next } = (answer as Called).result.structuredContent ?? { rows: [], cursor: null };
            ids.push(...rows.map(({ id }) => Number(id)));
            lengths.push(rows.length);
            cursor = next;
        }
        t.same(
            ids,
            Array.from({ length: 152 }, (_, index) => index + 1),
            name,
        );
        t.same(lengths.slice(-2), [1, 1], 'the large one is alone');
        t.ok(lengths.length > 4 && Math.max(...lengths) < 100, `${name}: pages of ${lengths}`);
    }
});

t.test('reads for one call of a batch at a time, and nothing once there is no room', async (t) => {
    const store = await noted(100, 20_000);
    const { select } = store.workspaceNotes as Required<typeof store.workspaceNotes>;
    let [open, most, begun] = [0, 0, 0];
    const counted: InventoryStore = {
        ...store,
        workspaceNotes: {
            ...store.workspaceNotes,
            async *select(...asked) {
                begun += 1;
                open += 1;
                most = Math.max(most, open);
                try {
                    await new Promise((resolve) => setImmediate(resolve));
                    yield* select(...asked);
                } finally {
                    open -= 1;
                }
            },
        },
    };
    const { post } = await served(t, { store: counted });
    await post(Array.from({ length: 100 }, (_, id) => toCall('notes', { cursor: '60' }, id)));
    t.match([most, open], [1, 0]);
    t.equal(begun, 2, 'the second one found that there is no more room');
});

t.test('holds a few records at a time, each of which may be long', async (t) => {
    const records = memoryRecords();
    const record = { data: 'SFRUUC8xLjEgMjAwIE9LDQoNCg==', host: 'www.example.com', ip: '192.0.2.1', port: 443 };
    await records.add(Array.from({ length: 150 }, (_, index) => ({ ...record, port: 1000 + index })));
    const limits: number[] = [];
    const list: typeof records.list = (query) => {
        limits.push(query.limit);
        return records.list(query);
    };
    const { post } = await served(t, { records: { ...records, list } });
    const { answer } = await post(toCall('records'));
    t.match((answer as Called).result.structuredContent, { cursor: '100' });
    t.ok(limits.length > 0 && Math.max(...limits) <= 16, `${limits}`);
});

t.test('takes one of the places of those who read rows for all calls of a request, and gives it back', async (t) => {
    const store = await noted(1, 10);
    const { count } = store.workspaceNotes as Required<typeof store.workspaceNotes>;
    let go = (): void => {};
    const held = new Promise<void>((resolve) => {
        go = resolve;
    });
    const begun: (() => void)[] = [];
    const reading = new Promise<void>((resolve) => begun.push(resolve));
    const slow: InventoryStore = {
        ...store,
        workspaceNotes: {
            ...store.workspaceNotes,
            async count(...asked) {
                begun[0]?.();
                await held;
                return await count(...asked);
            },
        },
    };
    const { post } = await served(t, { store: slow, maxStreams: 1 });
    const first = post([toCall('notes', {}, 1), toCall('hosts', {}, 2)]);
    await reading;
    t.match((await post(toCall('hosts'))).answer, { result: { isError: true, content: [{ text: FULL }] } });
    t.match((await post({ jsonrpc: '2.0', id: 1, method: 'tools/list' })).answer, { result: { tools: Array } }, 'of which nothing is read');
    go();
    t.match((await first).answer, [{ result: { structuredContent: { total: 1 } } }, { result: { structuredContent: { total: 1 } } }]);
    for (let times = 0; times < 3; times += 1) {
        t.match((await post(toCall('hosts'))).answer, { result: { structuredContent: { total: 1 } } });
    }
});

t.test('makes the schemas of its tools once, and serves others while it lists them for a batch', async (t) => {
    const store = memoryInventory();
    const listed = () => toolsOf({ store }, { has: () => true, workspaces: null });
    const [first, second] = [listed(), listed()];
    t.ok(first.length > 4 && first.every((tool, index) => tool === second[index]));

    const { server, post } = await served(t, { store });
    server.route({ method: 'GET', path: '/other', handler: () => 'x' });
    const list = { jsonrpc: '2.0', method: 'tools/list' };
    const { answer: once } = await post({ ...list, id: 'a' });
    let isOver = false;
    const batch = post(Array.from({ length: 100 }, (_, id) => ({ ...list, id }))).finally(() => {
        isOver = true;
    });
    for (let others = 0; others < 10; others += 1) {
        t.equal((await server.inject('/other')).statusCode, 200);
    }
    t.notOk(isOver);
    const results = ((await batch).answer as { readonly result: object }[]).map(({ result }) => result);
    t.same(
        results,
        Array.from({ length: 100 }, () => once.result),
    );
});
