import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { movingGroups } from '../../../../adapters/contract/inventory/moving-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { changed, inventoryFixture, type Mutation } from './fixture.ts';

/** Moves one after the other, so that those before one that may not go are moved. */
const oneByOne: Mutation<MemoryInventory> = (store) => ({
    async moveHosts(ids, to) {
        for (const id of ids.length === 0 ? [0] : ids) {
            await store.moveHosts([id], to);
        }
        return { hosts: ids.length };
    },
});

const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'moves hosts into another workspace with their services': (store) => ({
        services: { ...store.services, list: () => store.services.list([1, 1]) },
    }),
    'refuses by name addresses that the workspace holds already, and moves none': oneByOne,
    'moves nothing for a host or a workspace that is not there': oneByOne,
    'moves the notes, sessions and vulnerabilities of a host with it': (store) => ({
        notes: changed(store.notes, (note) => ({ ...note, workspace_id: 1 })),
    }),
    'finds the notes and vulnerabilities of a moved host again by the next import': (store) => ({
        async importHosts(name, hosts, options) {
            const { notes, ...summary } = await store.importHosts(name, hosts, options);
            return { ...summary, notes: { ...(notes as NonNullable<typeof notes>), unchanged: 0 } };
        },
    }),
    'shows a moved host and its services among the changes of its new workspace, and of the other no more': (store) => ({
        workspaceServices: {
            ...store.workspaceServices,
            select: (path, selection) => store.workspaceServices.select?.(path.length === 0 ? path : [1], selection) as never,
        },
    }),
    'takes a moved host for seen when it was seen before': (store) => {
        let at: Date | undefined;
        const hosts: MemoryInventory['hosts'] = {
            ...store.hosts,
            async *select(path, selection, options) {
                for await (const batch of (store.hosts as Required<typeof store.hosts>).select(path, selection, options)) {
                    yield at === undefined ? batch : batch.map((host) => ({ ...host, last_seen: at }));
                }
            },
        };
        return {
            hosts,
            moveHosts(ids, to) {
                at = new Date();
                return store.moveHosts(ids, to);
            },
        };
    },
    'moves no host over the boundary of a workspace': (store) => ({
        async moveHosts(ids, to) {
            await store.updateWorkspace(to, { limit_to_network: false });
            return await store.moveHosts(ids, to);
        },
    }),
    'changes of a workspace what is said and nothing else': (store) => ({
        updateWorkspace: (name, changes) => store.updateWorkspace(name, { limit_to_network: false, ...changes }),
    }),
    'renames a workspace with all that is in it, and gives its name away': (store) => ({
        // One that finds it by its old name as well.
        importHosts: (name, hosts, options) => store.importHosts(name === 'lab 🧪' ? 'other' : name, hosts, options),
    }),
    'refuses a name that a workspace has, or that is none': (store) => ({
        renameWorkspace: async (name, to) => (name === to ? await store.updateWorkspace(name, {}) : await store.renameWorkspace(name, to)),
    }),
};

proveLaws(
    t,
    inventoryContract,
    movingGroups.flatMap(({ laws }) => Object.keys(laws)),
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
