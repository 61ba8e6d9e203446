import { mock } from 'node:test';
import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import type { InventoryStore } from '../../../lib/inventory/store.ts';
import { type Served, served } from './served.ts';

/** By the timer that tests let pass. */
const wait = (milliseconds: number): Promise<void> => new Promise((resolve) => void setTimeout(resolve, milliseconds));

async function* oneHost(): AsyncGenerator<HostInput> {
    yield { address: '192.0.2.1' };
}

/** What `performance.now` says: what timers were told has passed. */
let passed = 0;

function pass(milliseconds: number): void {
    passed += milliseconds;
    mock.timers.tick(milliseconds);
}

/** A store of which every answer takes so many milliseconds, and its listings that have begun and not ended: of nothing, or of one host again and again. */
async function slowStore(milliseconds: number, isEndless = false): Promise<{ readonly store: InventoryStore; open(): number }> {
    const memory = memoryInventory();
    await memory.importHosts('default', oneHost());
    const host = await memory.hosts.get([1], 1);
    let open = 0;
    const slow = <Rows extends typeof memory.hosts | typeof memory.workspaces>(rows: Rows) => ({
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
    const store = { workspaces: slow(memory.workspaces), hosts: slow(memory.hosts) } as unknown as InventoryStore;
    return { store, open: () => open };
}

/** The status of an answer and how many milliseconds it took, as far as anybody can tell: all of them pass at once. */
async function asked(running: Served, path: string, headers: Record<string, string> = {}) {
    let answer: { readonly status: number } | undefined;
    const answering = running.get(path, { headers: { ...running.headers, ...headers } }).then((given) => {
        answer = given;
    });
    let took = 0;
    for (; answer === undefined && took < 60_000; took += 100) {
        // Whatever is asked without waiting has been asked after some turns of the event loop.
        for (let turns = 0; turns < 10; turns += 1) {
            await turn();
        }
        pass(100);
    }
    await answering;
    return { status: answer?.status, took };
}

/* Files that are run by one process share what stands outermost. */
t.test('answers in time', async (t) => {
    t.beforeEach(() => {
        mock.timers.enable({ apis: ['setTimeout'] });
        mock.method(performance, 'now', () => passed);
    });
    t.afterEach(() => mock.reset());

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
        mock.timers.reset();
        await until(() => open() === 0);
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
});
