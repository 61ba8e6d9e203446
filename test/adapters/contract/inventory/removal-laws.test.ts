import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { removalGroups } from '../../../../adapters/contract/inventory/removal-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { InventoryStore } from '../../../../lib/inventory/store.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

const MUTANTS: Readonly<Record<string, Mutation<Required<InventoryStore>>>> = {
    'removes the hosts that no import has seen for a while, with all below them': (store) => {
        const { expireHosts } = store as MemoryInventory;
        const eager: Pick<MemoryInventory, 'expireHosts'> = {
            expireHosts: (name, options) => expireHosts(name, { ...options, dryRun: false }),
        };
        return eager as object;
    },
    'removes the hosts of an address, of a range or all, with all below them': (store) => {
        const { removeHosts } = store as MemoryInventory;
        const whole: Pick<MemoryInventory, 'removeHosts'> = { removeHosts: (name, { dryRun = false }) => removeHosts(name, { dryRun }) };
        return whole as object;
    },
    'removes a workspace with all that is in it': (store) => {
        const { removeHosts } = store as MemoryInventory;
        const emptied: Pick<MemoryInventory, 'removeWorkspace'> = { removeWorkspace: (name) => removeHosts(name, {}) };
        return emptied as object;
    },
};

proveLaws(
    t,
    inventoryContract,
    removalGroups.flatMap(({ laws }) => Object.keys(laws)),
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
