import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { deletionGroups } from '../../../../adapters/contract/inventory/deletion-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { Deletion, Deletions } from '../../../../lib/inventory/deletions.ts';
import type { Collection } from '../../../../lib/inventory/store.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

type Told = (deletions: Deletions) => Deletions['select'];

/** A collection that tells its deletions in another way. */
function telling<Row extends { readonly id: number }>(collection: Collection<Row>, told: Told): Collection<Row> {
    const { deletions } = collection as Required<Pick<typeof collection, 'deletions'>>;
    return { ...collection, deletions: { since: deletions.since, select: told(deletions) } };
}

const nothing: Told = () => async function* () {};

/** The same deletions, and one more. */
const andOne =
    (more: Deletion): Told =>
    ({ select }) =>
        async function* (path, selection) {
            yield* select(path, selection);
            yield [more];
        };

const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'tells which hosts were removed, in the order in which they were': ({ hosts }) => ({
        hosts: telling(
            hosts,
            ({ select }) =>
                (path, { limit: _, ...selection }) =>
                    select(path, selection),
        ),
    }),
    'tells removed hosts in pages, though all of them were removed at once': ({ hosts }) => ({
        hosts: telling(
            hosts,
            ({ select }) =>
                (path, { after, ...selection }) =>
                    // Behind the time alone.
                    select(path, { ...selection, ...(after && { after: { ...after, id: Number.MAX_SAFE_INTEGER } }) }),
        ),
    }),
    'tells removed workspaces, and nothing of what was in them besides': ({ workspaces }) => ({ workspaces: telling(workspaces, nothing) }),
    'tells nothing of what was never shown': ({ workspaces }) => ({
        workspaces: telling(workspaces, andOne({ id: 3, deleted_at: new Date() })),
    }),
    'tells what a replacement removes, of hosts that stay as well': ({ services }) => ({ services: telling(services, nothing) }),
    'tells nothing of a dry run': ({ hosts }) => ({ hosts: telling(hosts, andOne({ id: 1, deleted_at: new Date() })) }),
    'tells the notes and vulnerabilities that a replacement removes': ({ notes }) => ({ notes: telling(notes, nothing) }),
    'tells a host that was moved where it was, until it is there again': ({ hosts }) => ({ hosts: telling(hosts, nothing) }),
};

proveLaws(
    t,
    inventoryContract,
    deletionGroups.flatMap(({ laws }) => Object.keys(laws)),
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
