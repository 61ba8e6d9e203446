import assert from 'node:assert/strict';
import { addressRange } from '../../../lib/address-range.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { compareRows, type FilterName, type Filters, matching, type Position, type Selection } from '../../../lib/inventory/selection.ts';
import type { Collection, ReadOptions } from '../../../lib/inventory/store.ts';
import { ids, present, until } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import {
    type AnyInventoryFixture,
    each,
    failing,
    type InventoryFixture,
    type InventoryLaws,
    MANY,
    nextMillisecond,
    rows,
} from './fixture.ts';
import { type KnownList, knownList, knownLists } from './known-rows.ts';

type Row = Readonly<Record<string, unknown>> & { readonly id: number; readonly updated_at?: Date };
type Selecting = Collection<Row> & Required<Pick<Collection<Row>, 'select' | 'count'>>;

/** A list whose rows can be selected, and all of them as the store lists them. */
interface SelectedList {
    readonly name: string;
    readonly collection: Selecting;
    readonly path: readonly number[];
    readonly listed: readonly Row[];
    /** The address of each row, or of its host. */
    readonly addressOf: (row: Row) => unknown;
}

/** No divisor of the number of rows, so that the last page is a short one. */
const LIMIT = 499;

const selectingLaws: Laws<AnyInventoryFixture> = {
    async 'goes on behind a row, to a limit'(fixture) {
        const { collection, path, listed } = await selectedList(fixture, MANY);
        const read: Row[] = [];
        for (let page: Row[] | null = null; page === null || page.length === LIMIT; read.push(...page)) {
            page = await selected(collection, path, { after: { id: read.at(-1)?.id ?? 0 }, limit: LIMIT });
            assert.ok(page.length <= LIMIT, `${page.length} rows`);
        }

        assert.ok(ids(read).join() === ids(listed).join(), 'pages make the list');
        assert.deepEqual((await selected(collection, path, { limit: 1 }))[0], listed[0]);
    },

    async 'selects nothing below parents that do not exist'(fixture) {
        const { collection, path } = await selectedList(fixture);
        for (const id of [2 ** 40, 2 ** 31 - 1, -1]) {
            assert.deepEqual(await selected(collection, path.with(0, id), {}), []);
        }
    },

    async 'ends a selection when its signal aborts'(fixture) {
        const { collection, path } = await selectedList(fixture, MANY);
        assert.equal(await batchesUntilAborted(collection, path), 1);
    },
};

const filteringLaws: Laws<AnyInventoryFixture> = {
    async 'selects the rows that fulfil a filter, and no others'(fixture) {
        for (const list of await selectedLists(fixture)) {
            for (const where of samples(list)) {
                await assertSelected(list, where);
            }
        }
    },

    async 'selects the rows that fulfil all filters at once'(fixture) {
        for (const list of await selectedLists(fixture)) {
            const [first = {}, ...others] = samples(list);
            for (const where of others) {
                await assertSelected(list, { ...first, ...where });
                await assertSelected(list, { ...where, ...first });
            }
        }
    },
};

const changeLaws: Laws<AnyInventoryFixture> = {
    async 'gives what has changed in the order of its change'(fixture) {
        const list = await changedList(fixture);
        const expected = list.listed.toSorted((one, other) => compareRows(true, one, other));
        const where = { updated_since: present(expected[0]?.updated_at) };
        const limit = Math.ceil(expected.length / 3);
        const read: Row[] = [];
        for (let page: Row[] | null = null; page === null || page.length === limit; read.push(...page)) {
            const last: Row | undefined = read.at(-1);
            page = await selected(list.collection, list.path, { where, limit, ...(last && { after: positionOf(last) }) });
        }

        assert.ok(
            ids(read).join() === ids(expected).join(),
            `ids ${ids(read)} in the order of the change; they belong as ${ids(expected)}`,
        );
    },
};

const followingLaws: Laws<InventoryFixture> = {
    async 'tells who asks from the last change that he knows of all that came after it'({ store }) {
        const { id } = await store.ensureWorkspace('default');
        const hosts = store.hosts as unknown as Selecting;
        let asked = false;
        let mayEnd = false;
        const slow = async function* (): AsyncIterable<HostInput> {
            yield { address: '192.0.2.1' };
            asked = true;
            await until(() => mayEnd);
            yield { address: '192.0.2.2' };
        };
        const first = store.importHosts('default', slow());
        await until(() => asked);
        await nextMillisecond();
        const others = [3, 4].map((host) => store.importHosts('default', each([{ address: `192.0.2.${host}` }])));
        await nextMillisecond();

        const known = new Set<number>();
        let last = new Date(0);
        const follow = async (): Promise<void> => {
            const listed = ids(await rows(store.hosts, [id]));
            const news = await selected(hosts, [id], { where: { updated_since: last } });
            last = news.at(-1)?.updated_at ?? last;
            for (const row of news) {
                known.add(row.id);
            }
            assert.deepEqual(
                listed.filter((host) => !known.has(host)),
                [],
            );
        };
        mayEnd = true;
        for (const ended of [Promise.race([first, ...others]), ...others, first]) {
            await ended;
            await follow();
        }
    },
};

const freeingLaws: Laws<AnyInventoryFixture> = {
    async 'frees what a selection held when it ends early'(fixture) {
        const { collection, path } = await selectedList(fixture, MANY);
        for await (const _batch of collection.select(path, {})) {
            break;
        }
        await batchesUntilAborted(collection, path);

        assert.equal(await fixture.openReads(), 0);
    },
};

const countingLaws: Laws<AnyInventoryFixture> = {
    async 'counts the rows that fulfil a filter'(fixture) {
        for (const list of await selectedLists(fixture)) {
            for (const where of [{}, ...samples(list)]) {
                const count = list.listed.filter(fulfilling(list, where)).length;
                assert.equal(await list.collection.count(list.path, where), count, `${list.name} where ${JSON.stringify(where)}`);
            }
            if (list.path.length > 0) {
                assert.equal(await list.collection.count(list.path.with(-1, 2 ** 31 - 1), {}), 0);
            }
        }
    },
};

const sightingLaws: Laws<InventoryFixture> = {
    async 'knows when each host was seen last, whatever was new of it'({ store }) {
        const { id } = (await store.importHosts('default', each([{ address: '192.0.2.1' }, { address: '192.0.2.2' }]))).workspace;
        const hosts = store.hosts as unknown as Selecting;
        const seen = async (): Promise<number[]> =>
            (await selected(hosts, [id], { extras: ['last_seen'] })).map(({ last_seen }) => Number(last_seen));
        const [listed, [first = 0, second = 0]] = [await selected(hosts, [id], {}), await seen()];
        await nextMillisecond();
        await assert.rejects(store.importHosts('default', failing([{ address: '192.0.2.1' }])), { message: 'the source broke' });

        assert.deepEqual(await seen(), [first, second]);
        const down = { state: 'down', if_known: true } as const;
        const input: HostInput[] = [{ address: '192.0.2.1' }, { address: '192.0.2.2', ...down }, { address: '192.0.2.3', state: 'down' }];
        await store.importHosts('default', each(input));
        const [again = 0, ...others] = await seen();
        assert.ok(again > first);
        assert.deepEqual(others, [second, 0]);

        const where = { last_seen_since: new Date(again) };
        assert.deepEqual(await selected(hosts, [id], { where }), listed.slice(0, 1));
        assert.equal(await hosts.count([id], where), 1);
    },
};

const notSelectingLaws: Laws<AnyInventoryFixture> = {
    async 'names no filters where nothing can be selected'({ store }) {
        assert.deepEqual(store.hosts.filters ?? [], []);
    },
};

/** Laws of stores from which a part of a list can be read. */
export const selectingGroups: InventoryLaws = [
    { needs: ['rows', 'many-hosts', 'selects'], laws: selectingLaws },
    { needs: ['rows', 'selects', 'filters'], laws: filteringLaws },
    { needs: ['rows', 'selects', 'changes'], laws: changeLaws },
    { needs: ['imports', 'selects', 'changes'], laws: followingLaws },
    { needs: ['rows', 'many-hosts', 'selects', 'reads-open'], laws: freeingLaws },
    { needs: ['rows', 'selects', 'counts'], laws: countingLaws },
    { needs: ['imports', 'selects', 'counts', 'sightings'], laws: sightingLaws },
    { lacks: 'selects', laws: notSelectingLaws },
];

async function selectedLists(fixture: AnyInventoryFixture): Promise<readonly SelectedList[]> {
    const lists = (await knownLists(fixture)).filter(({ collection }) => collection.select !== undefined);
    const workspaces = new Set(lists.flatMap(({ path: [id] }) => id ?? []));
    const hosts = (await Promise.all([...workspaces].map((id) => rows(fixture.store.hosts, [id])))).flat();
    const addresses = new Map(hosts.map(({ id, address }) => [id, address]));
    return await Promise.all(lists.map((list) => listing(list, addresses)));
}

/** The longest list of hosts. */
async function selectedList(fixture: AnyInventoryFixture, count?: number): Promise<SelectedList> {
    return await listing(await knownList(fixture, 'hosts', count));
}

async function listing({ name, collection, path }: KnownList, addresses?: ReadonlyMap<unknown, string>): Promise<SelectedList> {
    return {
        name,
        path,
        collection: collection as unknown as Selecting,
        listed: (await rows(collection, path)) as unknown as Row[],
        addressOf: (row) => row.address ?? addresses?.get(row.host_id),
    };
}

/** The question whether a row fulfils the filters: those that are below a host by its address. */
function fulfilling({ addressOf }: SelectedList, { address, ...where }: Filters): (row: Row) => boolean {
    const [fulfils, isThere] = [matching(where), matching(address === undefined ? {} : { address })];
    return (row) => fulfils(row) && isThere({ address: addressOf(row) });
}

/** Hosts of which, where the store imports, the second has changed after all others. */
async function changedList(fixture: AnyInventoryFixture): Promise<SelectedList> {
    const known = await knownList(fixture, 'hosts', 12);
    const { listed } = await listing(known);
    if (fixture.rows === undefined) {
        await nextMillisecond();
        await fixture.store.importHosts('default', each([{ address: present(listed[1]).address as string, os_name: 'changed' }]));
    }
    return await listing(known);
}

async function selected(collection: Selecting, path: readonly number[], selection: Selection, options?: ReadOptions): Promise<Row[]> {
    const all: Row[] = [];
    for await (const batch of collection.select(path, selection, options)) {
        all.push(...batch);
    }
    return all;
}

function positionOf({ id, updated_at }: Row): Position {
    return { id, updated_at: present(updated_at) };
}

async function assertSelected(list: SelectedList, where: Filters): Promise<void> {
    const { name, collection, path, listed } = list;
    const byChange = where.updated_since !== undefined;
    const expected = listed.filter(fulfilling(list, where)).sort((one, other) => compareRows(byChange, one, other));
    const found = await selected(collection, path, { where });
    assert.ok(ids(found).join() === ids(expected).join(), `${name} where ${JSON.stringify(where)}: ${found.length} of ${expected.length}`);
}

/** Filters with the values of some of the rows, and with values of none. */
function samples({ listed, addressOf, collection: { filters = [] } }: SelectedList): readonly Filters[] {
    const chosen = [...listed.slice(0, 2), ...listed.slice(-1)].map((row) => ({ ...row, address: addressOf(row) }));
    return filters.flatMap((name) => [...chosen.flatMap((row) => SAMPLES[name](row)), ...STRANGE[name]]);
}

const whole =
    (name: FilterName) =>
    (row: Row): Filters[] =>
        typeof row[name] === 'string' ? [{ [name]: row[name] }] : [];

const SAMPLES: Readonly<Record<FilterName, (row: Row) => readonly Filters[]>> = {
    state: whole('state'),
    name: whole('name'),
    os_name: whole('os_name'),
    arch: whole('arch'),
    purpose: whole('purpose'),
    address: ({ address }) => {
        if (address === undefined) {
            return [];
        }

        const isFour = !String(address).includes(':');
        const block = `${address}/${isFour ? 24 : 64}`;
        const to = isFour ? '255.255.255.255' : 'ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff';
        // Large ones may be found in other ways than small ones; one that begins and ends anywhere too.
        const wide = `${address}/${isFour ? 12 : 40}`;
        const odd = isFour ? '10.0.0.3-10.3.9.9' : 'fe80::-fe80::1:7';
        return [`${address}`, block, wide, odd, `${address}-${to}`].map((text) => ({ address: addressRange(text) }));
    },
    search: ({ name, info }) =>
        [name, info].flatMap((value) => {
            const word = /[a-z]{2,20}/i.exec(String(value ?? ''))?.[0];
            return word === undefined ? [] : [{ search: word.toUpperCase() }, { search: word.toLowerCase().slice(1) }];
        }),
    // Of rows that are listed it is not known.
    last_seen_since: () => [],
    updated_since: ({ updated_at }) => (updated_at === undefined ? [] : [{ updated_since: updated_at }]),
};

const oddly = (name: FilterName): Filters[] => [{ [name]: '' }, { [name]: "no' such -- value" }];

/** Values that few rows have, or none, among them what means something in SQL. */
const STRANGE: Readonly<Record<FilterName, readonly Filters[]>> = {
    state: [],
    name: oddly('name'),
    os_name: oddly('os_name'),
    arch: oddly('arch'),
    purpose: oddly('purpose'),
    address: ['0.0.0.0/0', '::/0', '::ffff:0:0/96'].map((text) => ({ address: addressRange(text) })),
    search: ['%', '_', '\\', "'", '.*'].map((search) => ({ search })),
    last_seen_since: [{ last_seen_since: new Date('2999-01-01T00:00:00Z') }],
    updated_since: [{ updated_since: new Date('2999-01-01T00:00:00Z') }, { updated_since: new Date(0) }],
};

async function batchesUntilAborted(collection: Selecting, path: readonly number[]): Promise<number> {
    const controller = new AbortController();
    let batches = 0;
    try {
        for await (const _batch of collection.select(path, {}, { signal: controller.signal })) {
            batches += 1;
            controller.abort();
        }
    } catch (error) {
        assert.equal((error as Error).name, 'AbortError');
    }
    return batches;
}
