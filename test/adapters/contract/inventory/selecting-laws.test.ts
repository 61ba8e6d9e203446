import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { selectingGroups } from '../../../../adapters/contract/inventory/selecting-laws.ts';
import type { Host } from '../../../../lib/inventory/host.ts';
import type { Filters, Selection } from '../../../../lib/inventory/selection.ts';
import type { Collection, InventoryStore } from '../../../../lib/inventory/store.ts';
import { lawOf, mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation, readOnlyFixture } from './fixture.ts';

type Hosts = Required<Collection<Host>>;
type Reading = Mutation<Required<InventoryStore>>;

/** The hosts, selected by something else than was asked for. */
const asking =
    (change: (selection: Selection) => Selection): Reading =>
    ({ hosts }) => {
        const { select } = hosts as Hosts;
        return { hosts: { ...hosts, select: (path, selection, options) => select(path, change(selection), options) } };
    };

const filtering = (change: (where: Filters) => Filters): Reading =>
    asking(({ where, ...selection }) => ({ ...selection, ...(where !== undefined && { where: change(where) }) }));

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Reading>> = {
    'goes on behind a row, to a limit': asking(({ after, ...selection }) => ({
        ...selection,
        ...(after !== undefined && { after: { ...after, id: Math.max(0, after.id - 1) } }),
    })),
    'selects the rows that fulfil a filter, and no others': filtering(({ address: _, ...where }) => where),
    'selects the rows that fulfil all filters at once': filtering((where) => Object.fromEntries(Object.entries(where).slice(0, 1))),
    'gives what has changed in the order of its change': ({ hosts }) => ({
        hosts: {
            ...hosts,
            async *select(path, { limit = Number.POSITIVE_INFINITY, after = { id: 0 } }) {
                yield (await all(hosts, path)).filter(({ id }) => id > after.id).slice(0, limit);
            },
        },
    }),
    'tells who asks from the last change that he knows of all that came after it': ({ hosts }) => {
        const { select } = hosts as Hosts;
        const dated = (batch: readonly Host[]) => batch.map((host) => ({ ...host, updated_at: new Date(1e12 - host.id) }));
        return {
            hosts: {
                ...hosts,
                async *select(path, { where: { updated_since: since = new Date(0) } = {} }) {
                    for await (const batch of select(path, {})) {
                        yield dated(batch).filter(({ updated_at }) => updated_at >= since);
                    }
                },
            },
        };
    },
    'selects nothing below parents that do not exist': ({ hosts }) => ({
        hosts: { ...hosts, select: (_path, selection, options) => (hosts as Hosts).select([1], selection, options) },
    }),
    'ends a selection when its signal aborts': ({ hosts }) => ({
        hosts: { ...hosts, select: (path, selection) => (hosts as Hosts).select(path, selection) },
    }),
    'frees what a selection held when it ends early': ({ hosts }) => {
        let open = 0;
        return {
            openReads: () => open,
            hosts: {
                ...hosts,
                async *select(path, selection, options) {
                    open += 1;
                    yield* (hosts as Hosts).select(path, selection, options);
                    open -= 1;
                },
            },
        };
    },
    'counts the rows that fulfil a filter': ({ hosts }) => ({
        hosts: { ...hosts, count: (path) => (hosts as Hosts).count(path, {}) },
    }),
    'knows when each host was seen last, whatever was new of it': ({ hosts }) => ({
        hosts: {
            ...hosts,
            async *select(path, selection, options) {
                for await (const batch of (hosts as Hosts).select(path, selection, options)) {
                    yield batch.map((host) => ('last_seen' in host ? { ...host, last_seen: host.updated_at } : host));
                }
            },
        },
    }),
    'names no filters where nothing can be selected': ({ hosts: { list, get } }) => ({ hosts: { list, get, filters: ['name'] } }),
};

const lawNames = selectingGroups.flatMap(({ laws }) => Object.keys(laws));

t.test('on a store that imports', async (t) => {
    proveLaws(
        t,
        inventoryContract,
        lawNames,
        mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
    );
});

const FILTERED: Readonly<Record<string, Reading>> = {
    'a search in the case of the letters': ({ hosts }) => ({
        hosts: {
            ...hosts,
            async *select(path, { where = {} }) {
                const { search } = where;
                const found = search === undefined ? (hosts as Hosts).select(path, { where }) : [await all(hosts, path)];
                for await (const batch of found) {
                    yield batch.filter(({ name }) => search === undefined || name.includes(search));
                }
            },
        },
    }),
    'a search that takes % for anything': filtering(({ search, ...where }) =>
        search === '%' ? where : { ...where, ...(search && { search }) },
    ),
    'blocks without their last address': filtering(({ address, ...where }) => ({
        ...where,
        ...(address && { address: { ...address, last: address.first } }),
    })),
    'services of other addresses': ({ workspaceServices }) => ({
        workspaceServices: {
            ...workspaceServices,
            select: (path, { where: { address: _, ...where } = {}, ...selection }, options) =>
                (workspaceServices as Required<typeof workspaceServices>).select(path, { ...selection, where }, options),
        },
    }),
    'services of the hosts of a block, but for the first': ({ workspaceServices }) => ({
        workspaceServices: {
            ...workspaceServices,
            async *select(path, selection, options) {
                const found = (workspaceServices as Required<typeof workspaceServices>).select(path, selection, options);
                for await (const batch of found) {
                    yield selection.where?.address === undefined ? batch : batch.slice(1);
                }
            },
        },
    }),
    'a time that is left out': filtering(({ updated_since: _, ...where }) => where),
    'an empty text that is left out': filtering((where) => Object.fromEntries(Object.entries(where).filter(([, value]) => value !== ''))),
};

for (const [name, mutate] of Object.entries(FILTERED)) {
    t.test(`catches ${name}`, async (t) => {
        const law = lawOf(inventoryContract, () => inventoryFixture(mutate), 'selects the rows that fulfil a filter, and no others');
        await t.rejects(law(), { code: 'ERR_ASSERTION' });
    });
}

t.test('holds stores that only read to the same', async (t) => {
    const law = 'goes on behind a row, to a limit';
    await t.rejects(lawOf(inventoryContract, () => readOnlyFixture(MUTANTS[law] as Reading), law)(), { code: 'ERR_ASSERTION' });
    await t.resolves(lawOf(inventoryContract, readOnlyFixture, law)());
});

async function all(hosts: Collection<Host>, path: readonly number[]): Promise<Host[]> {
    const rows: Host[] = [];
    for await (const batch of hosts.list(path)) {
        rows.push(...batch);
    }
    return rows;
}
