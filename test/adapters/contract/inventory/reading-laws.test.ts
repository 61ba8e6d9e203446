import t from 'tap';
import { inventoryContract, type ReadOnlyInventoryFixture } from '../../../../adapters/contract/index.ts';
import { readingGroups } from '../../../../adapters/contract/inventory/reading-laws.ts';
import type { Host } from '../../../../lib/inventory/host.ts';
import type { Collection, InventoryStore } from '../../../../lib/inventory/store.ts';
import { lawOf, lawsOf, mapValues, proveLaws } from '../laws.ts';
import { anywhere, changed, empty, hostsShown, inventoryFixture, listing, type Mutation, readOnlyFixture } from './fixture.ts';

type Reading = Mutation<Required<InventoryStore>>;

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Reading>> = {
    'lists rows in arrays': (store) => listing(store, (path, options) => oneByOne(store.hosts.list(path, options))),
    'shows the rows that there are, with the ids of their parents': (store) =>
        hostsShown(store, ({ workspace_id: _, ...host }) => host as Host),
    'shows a row alone as in the list': (store) => ({
        services: { list: store.services.list, get: changed(store.services, (service) => ({ ...service, name: '' })).get },
    }),
    'gives fields the types in which they go out': (store) => ({
        notes: changed(store.notes, (note) => ({ ...note, id: `${note.id}` as never })),
    }),
    'shows null for a row that does not exist': (store) => ({
        workspaces: {
            list: store.workspaces.list,
            get: async (path, id) => (await store.workspaces.get(path, id)) ?? (undefined as never),
        },
    }),
    'never says that a row is not there to who leaves while it is looked up': (store) => ({
        hosts: {
            ...store.hosts,
            async get(path, id, { signal } = {}) {
                const host = await store.hosts.get(path, id);
                return signal?.aborted === true ? null : host;
            },
        },
    }),
    'lists rows in ascending id, each once': (store) =>
        listing(store, async function* (path, options) {
            for await (const batch of store.hosts.list(path, options)) {
                yield batch.toReversed();
            }
        }),
    'gives a long list in batches': (store) =>
        listing(store, async function* (path) {
            const rows: Host[] = [];
            for await (const batch of store.hosts.list(path)) {
                rows.push(...batch);
            }
            yield rows;
        }),
    'ends the reading when its signal aborts': (store) => listing(store, (path) => store.hosts.list(path)),
    'reads nothing when the signal was aborted before': (store) => listing(store, (path) => store.hosts.list(path)),
    'frees what a reading held when it ends early': (store) => {
        let open = 0;
        return {
            openReads: () => open,
            ...listing(store, async function* (path, options) {
                open += 1;
                yield* store.hosts.list(path, options);
                open -= 1;
            }),
        };
    },
    'frees what a look-up held when its signal aborts': (store) => {
        let open = 0;
        return {
            openReads: () => open,
            hosts: {
                ...store.hosts,
                async get(path, id, { signal } = {}) {
                    open += 1;
                    const host = await store.hosts.get(path, id);
                    signal?.throwIfAborted();
                    open -= 1;
                    return host;
                },
            },
        };
    },
    'shows a host only below its own workspace': (store) => ({ hosts: anywhere(store.hosts, [[1], [2]]) }),
    'shows a service only below its own parents': (store) => ({
        services: anywhere(store.services, [
            [1, 1],
            [1, 2],
        ]),
    }),
    'takes ids beyond 32 bits for unknown, not for an error': (store) => ({
        hosts: {
            list: store.hosts.list,
            async get(path, id) {
                if ([...path, id].some((id) => id > 2 ** 31 - 1)) {
                    throw Object.assign(new Error('out of range for type integer'), { code: '22003' });
                }
                return store.hosts.get(path, id);
            },
        },
    }),
    'shows a note only below its own parents': (store) => ({ notes: anywhere(store.notes, [[1, 1]]) }),
    'shows a session only below its own parents': (store) => ({ sessions: anywhere(store.sessions, [[1, 1]]) }),
    'shows a vulnerability only below its own parents': (store) => ({ vulns: anywhere(store.vulns, [[1, 1, 1]]) }),
    'shows a service of a workspace only below it': (store) => ({ workspaceServices: anywhere(store.workspaceServices, [[1]]) }),
    'shows a note of a workspace only below it': (store) => ({ workspaceNotes: anywhere(store.workspaceNotes, [[1]]) }),
    'shows a session of a workspace only below it': (store) => ({ workspaceSessions: anywhere(store.workspaceSessions, [[1]]) }),
    'shows a vulnerability of a workspace only below it': (store) => ({ workspaceVulns: anywhere(store.workspaceVulns, [[1]]) }),
    'shows a vulnerability of a host only below it': (store) => ({ hostVulns: anywhere(store.hostVulns, [[1, 1]]) }),
    'leaves out hostVulns': () => ({ hostVulns: {} as never }),
    'leaves out workspaceServices': () => ({ workspaceServices: {} as never }),
    'leaves out workspaceNotes': () => ({ workspaceNotes: {} as never }),
    'leaves out workspaceSessions': () => ({ workspaceSessions: null as never }),
    'leaves out workspaceVulns': () => ({ workspaceVulns: {} as never }),
    'leaves out services': () => ({ services: {} as never }),
    'leaves out notes': () => ({ notes: null as never }),
    'leaves out sessions': () => ({ sessions: {} as never }),
    'leaves out vulns': () => ({ services: undefined as never }),
};

const lawNames = readingGroups.flatMap(({ laws }) => Object.keys(laws));

t.test('on a store that imports', async (t) => {
    proveLaws(
        t,
        inventoryContract,
        lawNames,
        mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
    );
});

t.test('on a store that only reads', async (t) => {
    proveLaws(
        t,
        inventoryContract,
        lawNames,
        mapValues(MUTANTS, (mutate) => () => readOnlyFixture(mutate)),
    );
});

const EMPTY: Readonly<Record<string, Reading>> = {
    'shows a service only below its own parents': () => ({ services: empty() }),
    'shows a note only below its own parents': () => ({ notes: empty() }),
    'shows a session only below its own parents': () => ({ sessions: empty() }),
    'shows a vulnerability only below its own parents': () => ({ vulns: empty() }),
    'shows a vulnerability of a host only below it': () => ({ hostVulns: empty() }),
    'shows a service of a workspace only below it': () => ({ workspaceServices: empty() }),
    'shows a note of a workspace only below it': () => ({ workspaceNotes: empty() }),
    'shows a session of a workspace only below it': () => ({ workspaceSessions: empty() }),
    'shows a vulnerability of a workspace only below it': () => ({ workspaceVulns: empty() }),
};

for (const [name, mutate] of Object.entries(EMPTY)) {
    t.test(`catches a collection that is always empty: ${name}`, async (t) => {
        for (const create of [() => inventoryFixture(mutate), () => readOnlyFixture(mutate)]) {
            await t.rejects(lawOf(inventoryContract, create, name)(), { code: 'ERR_ASSERTION' });
        }
    });
}

t.test('catches ids that are texts', async (t) => {
    const create = () => readOnlyFixture((store) => hostsShown(store, (host) => ({ ...host, id: `${host.id}` as never })));
    for (const name of ['gives fields the types in which they go out', 'shows the rows that there are, with the ids of their parents']) {
        await t.rejects(lawOf(inventoryContract, create, name)(), { code: 'ERR_ASSERTION' });
    }
});

t.test('catches a time that is a text and a count that is a text', async (t) => {
    const changes: readonly object[] = [{ created_at: '2026-11-21T09:30:00Z' }, { created_at: 1_795_253_400_000 }, { note_count: '2' }];
    for (const change of changes) {
        const create = () => readOnlyFixture((store) => hostsShown(store, (host) => ({ ...host, ...change })));
        const law = lawOf(inventoryContract, create, 'gives fields the types in which they go out');
        await t.rejects(law(), { code: 'ERR_ASSERTION' }, JSON.stringify(change));
    }
});

t.test('passes fields that are missing or null', async (t) => {
    const missing = { name: null, mac: undefined } as object;
    const create = () => readOnlyFixture((store) => hostsShown(store, (host) => ({ ...host, ...missing })));
    await t.resolves(lawOf(inventoryContract, create, 'gives fields the types in which they go out')());
});

t.test('passes a store that only reads', async (t) => {
    for (const [name, law] of lawsOf(inventoryContract, readOnlyFixture)) {
        await law();
        t.pass(name);
    }
});

t.test('passes a store that only reads workspaces and hosts', async (t) => {
    const laws = lawsOf(inventoryContract, () => {
        const { store, ...fixture } = readOnlyFixture();
        return { ...fixture, store: { workspaces: store.workspaces, hosts: store.hosts } };
    });
    t.ok(['leaves out services', 'leaves out notes', 'leaves out sessions', 'leaves out vulns'].every((name) => laws.has(name)));
    for (const [name, law] of laws) {
        await law();
        t.pass(name);
    }
});

/** What is missing from the fixture, and a law that cannot be put to the test without it. */
const HOLES: readonly [law: string, supply: RegExp, create: () => ReadOnlyInventoryFixture][] = [
    ['lists rows in arrays', /must supply rows/, () => without('rows')],
    ['frees what a reading held when it ends early', /must supply openReads/, () => without('openReads')],
    [
        'gives a long list in batches',
        /rows with a workspace of at least 2500 hosts/,
        () => withRows({ hosts: readOnlyFixture().rows.hosts.slice(0, 9) }),
    ],
    ['shows a service only below its own parents', /must supply rows.services/, () => withRows({ services: [] })],
    ['shows a note only below its own parents', /must supply .*rows.notes/, () => withRows({ notes: [] })],
    ['shows a session only below its own parents', /must supply .*rows.sessions/, () => withRows({ sessions: [] })],
    ['shows a vulnerability only below its own parents', /must supply .*rows.vulns/, () => withRows({ vulns: [] })],
];

for (const [name, message, create] of HOLES) {
    t.test(`fails a law that the fixture gives no way to test: ${name}`, async (t) => {
        await t.rejects(lawOf(inventoryContract, create, name)(), { code: 'ERR_ASSERTION', message });
    });
}

t.test('fails the laws of rows that a fixture of a store that imports cannot add', async (t) => {
    const { add: _, ...fixture } = inventoryFixture();
    for (const one of ['note', 'session', 'vulnerability']) {
        const law = lawOf(inventoryContract, () => fixture, `shows a ${one} only below its own parents`);
        await t.rejects(law(), { code: 'ERR_ASSERTION', message: /must supply add\./ });
    }
});

function without(name: 'rows' | 'openReads'): ReadOnlyInventoryFixture {
    const { [name]: _, ...fixture } = readOnlyFixture();
    return fixture as ReadOnlyInventoryFixture;
}

function withRows(rows: Partial<ReadOnlyInventoryFixture['rows']>): ReadOnlyInventoryFixture {
    const fixture = readOnlyFixture();
    return { ...fixture, rows: { ...fixture.rows, ...rows } };
}

async function* oneByOne(batches: ReturnType<Collection<Host>['list']>): AsyncGenerator<never> {
    for await (const batch of batches) {
        yield* batch as never[];
    }
}
