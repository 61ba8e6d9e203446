import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { rememberingGroups } from '../../../../adapters/contract/inventory/remembering-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import type { ImportOptions, ImportSummary } from '../../../../lib/inventory/store.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { inventoryFixture, type Mutation } from './fixture.ts';

type ImportHosts = MemoryInventory['importHosts'];

/** An import with other options, or of other hosts. */
function importing(
    change: (options: ImportOptions, hosts: AsyncIterable<HostInput>) => readonly [ImportOptions, AsyncIterable<HostInput>?],
): Mutation<MemoryInventory> {
    return ({ importHosts }) => ({
        async importHosts(name, hosts, options = {}) {
            const [changed, others = hosts] = change(options, hosts);
            return await importHosts(name, others, changed);
        },
    });
}

/** A store that answers an origin that it has heard of with the last answer, whatever has changed since. */
function withLongMemory(isKnown: (options: ImportOptions) => boolean): Mutation<MemoryInventory> {
    return ({ importHosts }) => {
        const known = new Map<string, ImportSummary>();
        const remembering: ImportHosts = async (name, hosts, options = {}) => {
            const { origin, ...others } = options;
            const before = origin && isKnown(options) ? known.get(origin.id) : undefined;
            if (before !== undefined) {
                await origin?.arrived();
                const { hosts: counts } = before;
                return { ...before, hosts: importCounts({ unchanged: counts.new + counts.unchanged + counts.changed }) };
            }

            const summary = await importHosts(name, hosts, others);
            known.set(origin?.id ?? '', summary);
            return summary;
        };
        return { importHosts: remembering };
    };
}

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'does not look at the hosts of an import that was made before, and says that all are unchanged': importing(
        ({ origin: _, ...options }) => [options],
    ),
    'looks at them as soon as anything is different, and else not': withLongMemory(() => true),
    'imports nothing of what has not come, though it was imported before': importing(({ origin, ...options }) => [
        { ...options, ...(origin && { origin: { ...origin, arrived: async () => {} } }) },
    ]),
    'looks each time at what must be said each time': importing(({ origin, ...options }) => [
        { ...options, ...(origin && { origin: { id: origin.id, arrived: origin.arrived } }) },
    ]),
    'says in a dry run what an import would do that was made before, and remembers no dry run': withLongMemory(() => true),
    'has seen the hosts of an import that was made before, but for those that are down, unless it is a dry run': withLongMemory(() => true),
    'looks each time at what it refuses': withLongMemory(() => true),
};

const lawNames = rememberingGroups.flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
