import t from 'tap';
import { inventoryContract } from '../../../../adapters/contract/index.ts';
import { findingGroups } from '../../../../adapters/contract/inventory/finding-laws.ts';
import type { MemoryInventory } from '../../../../adapters/memory/index.ts';
import type { HostInput } from '../../../../lib/inventory/host.ts';
import { mapValues, proveLaws } from '../laws.ts';
import { changed, hostsShown, inventoryFixture, type Mutation } from './fixture.ts';

/** Imports other hosts than those that are given. */
function inputs(change: (host: HostInput) => HostInput): Mutation<MemoryInventory> {
    return (store) => ({ importHosts: (name, hosts, options) => store.importHosts(name, mapped(hosts, change), options) });
}

async function* mapped(hosts: AsyncIterable<HostInput>, change: (host: HostInput) => HostInput): AsyncIterable<HostInput> {
    for await (const host of hosts) {
        yield change(host);
    }
}

/** Imports host after host, each for itself. */
const oneByOne: Mutation<MemoryInventory> = (store) => ({
    async importHosts(name, hosts, options) {
        let summary = await store.importHosts(name, mapped(none(), same));
        for await (const host of hosts) {
            summary = await store.importHosts(name, one(host), options);
        }
        return summary;
    },
});

async function* one(host: HostInput): AsyncIterable<HostInput> {
    yield host;
}

async function* none(): AsyncIterable<HostInput> {}

const same = (host: HostInput): HostInput => host;

/** One way to break each law; a law that its mutant passes is no law. */
const MUTANTS: Readonly<Record<string, Mutation<MemoryInventory>>> = {
    'keeps the notes and vulnerabilities of a host and of its services': inputs(({ vulns = [], ...host }) => ({
        ...host,
        vulns: vulns.map(({ exploited_at: _lost, ...vuln }) => vuln),
    })),
    'leaves notes and vulnerabilities that are so already as they are, and spends no id on them': (store) => {
        const spaced = <Row extends { readonly id: number }>(row: Row): Row => ({ ...row, id: row.id * 2 });
        return { workspaceNotes: changed(store.workspaceNotes, spaced) };
    },
    'changes notes and vulnerabilities that are told otherwise where they are': inputs(({ notes = [], ...host }) => ({
        ...host,
        notes: notes.map((note) => ({ critical: null, ...note })),
    })),
    'tells notes of one type and vulnerabilities of one name apart by their place': inputs(({ vulns = [], ...host }) => ({
        ...host,
        vulns: [...new Map(vulns.map((vuln) => [vuln.name, vuln])).values()],
    })),
    'keeps the notes and vulnerabilities of all that names an address, and what is said again once': oneByOne,
    'leaves the notes of others alone': (store) => {
        let imports = 0;
        return {
            workspaceNotes: changed(store.workspaceNotes, (note) => ({ ...note, data: imports > 1 ? { mine: true } : note.data })),
            importHosts: (...input) => {
                imports += 1;
                return store.importHosts(...input);
            },
        };
    },
    'imports no note when the source fails half-way': oneByOne,
    'shows notes and vulnerabilities at once with their import': oneByOne,
    'shows below a host the vulnerabilities of its services and those of the host as a whole': (store) => ({
        hostVulns: {
            ...store.hostVulns,
            async *list(path, options) {
                for await (const batch of store.hostVulns.list(path, options)) {
                    yield batch.filter(({ service_id }) => service_id !== null);
                }
            },
        },
    }),
    'selects the rows of some hosts of a workspace': (store) => ({
        workspaceVulns: {
            ...store.workspaceVulns,
            select: (path, { hosts: _, ...selection }) =>
                (store.workspaceVulns as Required<typeof store.workspaceVulns>).select(path, selection),
        },
    }),
    'removes the notes and vulnerabilities of a host with it': () => ({ removeHosts: async () => ({ hosts: 1 }) }),
    'removes the notes and vulnerabilities that a replacement does not name, but for those of others': (store) => ({
        importHosts: async (name, hosts, options) => {
            const { notes, ...summary } = await store.importHosts(name, hosts, options);
            return { ...summary, notes: { ...(notes as NonNullable<typeof notes>), gone: 0 } };
        },
    }),
    'leaves notes and vulnerabilities that a replacement names as they are': (store) => {
        let imports = 0;
        return {
            ...hostsShown(store, (host) => ({ ...host, note_count: host.note_count - (imports > 1 ? 1 : 0) })),
            importHosts: (...input) => {
                imports += 1;
                return store.importHosts(...input);
            },
        };
    },
};

const lawNames = findingGroups.flatMap(({ laws }) => Object.keys(laws));
proveLaws(
    t,
    inventoryContract,
    lawNames,
    mapValues(MUTANTS, (mutate) => () => inventoryFixture(mutate)),
);
