import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { boundaryGroups } from '../../../../adapters/contract/inventory/boundary-laws.ts';
import { each } from '../../../../adapters/contract/inventory/fixture.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import { lawOf, mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

/** A store that forgets which boundary it has been given. */
const boundless: Mutation<MemoryInventory> = (store) => ({
    async importHosts(name, hosts, options) {
        const { id } = await store.ensureWorkspace(name);
        await store.limitWorkspace(id, '');
        return store.importHosts(name, hosts, options);
    },
});

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'leaves out and counts what is outside of the boundary of a workspace': boundless,
    'leaves nothing out where the boundary is empty': (store) => ({
        async importHosts(name, hosts, options) {
            const { id } = await store.ensureWorkspace(name);
            await store.limitWorkspace(id, '192.0.2.0/24');
            return store.importHosts(name, hosts, options);
        },
    }),
    'imports nothing where the boundary is none': boundless,
    'leaves nothing out where a workspace is not limited to its boundary': (store) => ({
        updateWorkspace: (name, changes) => store.updateWorkspace(name, { ...changes, limit_to_network: true }),
    }),
    'lets nothing in from outside of a boundary that is set while the hosts are read': (store) => ({
        async importHosts(name, hosts, options) {
            const read: HostInput[] = [];
            for await (const host of hosts) {
                read.push(host);
            }
            await store.updateWorkspace(name, { limit_to_network: false });
            return store.importHosts(name, each(read), options);
        },
    }),
};

const lawNames = boundaryGroups.flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);

t.test('fails the laws of boundaries for a fixture that cannot set any', async (t) => {
    const create = () => {
        const { add: _none, ...fixture } = inventoryFixture();
        return fixture;
    };
    const law = lawOf(inventoryContract, create, 'imports nothing where the boundary is none');
    await t.rejects(law(), { message: /must supply add.boundary\(\)/ });
});
