import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { replacingGroups } from '../../../../adapters/contract/inventory/replacing-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import type { ImportSummary } from '../../../../lib/inventory/store.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { changed, hostsShown, inventoryFixture, type Mutation } from './fixture.ts';

type Import = MemoryInventory['importHosts'];

/** Imports otherwise where the import replaces. */
function replacing(replace: (store: MemoryInventory, ...input: Parameters<Import>) => Promise<ImportSummary>): Mutation<MemoryInventory> {
    return (store) => ({
        importHosts: (name, hosts, options) =>
            options?.replace === true ? replace(store, name, hosts, options) : store.importHosts(name, hosts, options),
    });
}

/** Imports only those hosts that fulfil a condition. */
function only(condition: (host: HostInput) => boolean): Mutation<MemoryInventory> {
    return replacing((store, name, hosts, options) => store.importHosts(name, filtered(hosts, condition), options));
}

async function* filtered(hosts: AsyncIterable<HostInput>, condition: (host: HostInput) => boolean): AsyncIterable<HostInput> {
    for await (const host of hosts) {
        if (condition(host)) {
            yield host;
        }
    }
}

async function* none(): AsyncIterable<HostInput> {}

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'removes the hosts that a replacement does not name': replacing((store, name, hosts) => store.importHosts(name, hosts)),
    'removes none of them without being asked': (store) => ({
        importHosts: (name, hosts, options) => store.importHosts(name, hosts, { ...options, replace: true }),
    }),
    'keeps the hosts that a replacement names as down': only(({ state }) => state !== 'down'),
    'leaves what a replacement says that is so already as it is': (store) => {
        let replaced = 0;
        return {
            ...hostsShown(store, (host) => ({ ...host, updated_at: new Date(host.updated_at.getTime() + replaced) })),
            importHosts(...input) {
                replaced += 1;
                return store.importHosts(...input);
            },
        };
    },
    'empties a workspace that is replaced by nothing': replacing(async (store, name, hosts, options) => {
        const given: HostInput[] = [];
        for await (const host of hosts) {
            given.push(host);
        }
        const all = {
            async *[Symbol.asyncIterator]() {
                yield* given;
            },
        };
        return store.importHosts(name, all, given.length === 0 ? {} : options);
    }),
    'removes nothing when the source of a replacement fails half-way': replacing(async (store, name, hosts, options) => {
        await store.importHosts(name, none(), options);
        return store.importHosts(name, hosts, options);
    }),
    'shows a replacement at once': replacing(async (store, name, hosts, options) => {
        const { hosts: gone } = await store.importHosts(name, none(), options);
        // Whoever reads has his turn in between.
        await turn();
        await turn();
        const summary = await store.importHosts(name, hosts);
        return { ...summary, hosts: { ...summary.hosts, gone: gone.gone } };
    }),
    'removes the services that a replacement does not name, and counts its hosts as changed': replacing(async (store, ...input) => {
        const summary = await store.importHosts(...input);
        const { changed: more, unchanged } = summary.hosts;
        return { ...summary, hosts: { ...summary.hosts, changed: 0, unchanged: more + unchanged } };
    }),
    'counts a host that loses services as changed once': replacing(async (store, ...input) => {
        const summary = await store.importHosts(...input);
        return { ...summary, hosts: { ...summary.hosts, changed: summary.hosts.changed + 1 } };
    }),
    'removes the vulnerabilities of a service that a replacement does not name': (store) => ({
        hosts: changed(store.hosts, (host) => ({ ...host, vuln_count: host.vuln_count * 2 })),
    }),
};

const lawNames = replacingGroups.flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
