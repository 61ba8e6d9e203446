import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { dryRunGroups } from '../../../../adapters/contract/inventory/dry-run-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'says in a dry run what an import would change, and changes nothing': (store) => ({
        importHosts: (name, hosts, { dryRun: _ignored, ...options } = {}) => store.importHosts(name, hosts, options),
    }),
    'makes no workspace in a dry run': (store) => ({
        async importHosts(name, hosts, options) {
            await store.ensureWorkspace(name);
            return store.importHosts(name, hosts, options);
        },
    }),
};

const lawNames = dryRunGroups.flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
