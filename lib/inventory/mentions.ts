import type { OnWarning } from '../process-warning.ts';
import { type ClosedPorts, MAX_PORT, mergedRanges } from './closed-ports.ts';
import { PROTOCOLS } from './fields.ts';
import { MAX_ALIKE, MAX_FINDINGS, type NoteInput, type VulnInput } from './findings.ts';
import type { HostInput, ServiceInput } from './host.ts';
import { eachCount, type ImportedCounts, importCounts } from './import-counts.ts';

/** A host that a source names several times, as all of it says together. */
interface MergedMentions {
    readonly host: HostInput;
    /** Notes and vulnerabilities that were too many for one host. */
    readonly leftOut: { readonly notes: number; readonly vulns: number };
}

/**
 * What mentions of one address say together. Of a field, and of a service, the last one that says it counts; notes and vulnerabilities of all are
 * kept, those that are told again once. None is made of one that all of them tell only to those who know it.
 */
function mergedMentions(mentions: readonly HostInput[]): MergedMentions {
    const fields: HostInput = { address: '' };
    for (const mention of mentions) {
        Object.assign(fields, mention);
    }

    const { services: _services, closed_ports: _closed, if_known: _known, notes: _notes, vulns: _vulns, ...own } = fields;
    const services = mergedServices(mentions);
    const closed = mergedClosedPorts(mentions);
    const notes = mergedFindings(
        mentions.map((mention) => mention.notes ?? []),
        ({ ntype }) => ntype,
    );
    const vulns = mergedFindings(
        mentions.map((mention) => mention.vulns ?? []),
        ({ name }) => name,
    );
    return {
        host: {
            ...own,
            ...(mentions.every(({ if_known }) => if_known === true) && { if_known: true }),
            ...(services.length > 0 && { services }),
            ...(Object.keys(closed).length > 0 && { closed_ports: closed }),
            ...(notes.kept.length > 0 && { notes: notes.kept }),
            ...(vulns.kept.length > 0 && { vulns: vulns.kept }),
        },
        leftOut: { notes: notes.leftOut, vulns: vulns.leftOut },
    };
}

/** A service that was told, and is among the closed ports of a later mention which does not tell it, is closed. */
function mergedServices(mentions: readonly HostInput[]): readonly ServiceInput[] {
    const merged = new Map<string, { readonly service: ServiceInput; readonly told: number }>();
    for (const [told, { services = [] }] of mentions.entries()) {
        for (const service of services) {
            const key = `${service.port}/${service.proto}`;
            merged.set(key, { service: { ...merged.get(key)?.service, ...service }, told });
        }
    }

    const closed = lastClosed(
        [...merged.values()].map(({ service }) => service),
        mentions,
    );
    return [...merged.values()].map(({ service, told }) =>
        (closed.get(service) ?? -1) > told ? { ...service, state: 'closed' } : service,
    );
}

/** The last mention that has each service among its closed ports, by its index. From the last one on, so that each is found once, however many have it. */
function lastClosed(services: readonly ServiceInput[], mentions: readonly HostInput[]): ReadonlyMap<ServiceInput, number> {
    const found = new Map<ServiceInput, number>();
    for (const proto of PROTOCOLS) {
        const sorted = services.filter((service) => service.proto === proto).toSorted((one, other) => one.port - other.port);
        const { unfound, find } = notFound(sorted.length);
        for (let index = mentions.length - 1; index >= 0; index -= 1) {
            for (const [first, last] of mentions[index]?.closed_ports?.[proto] ?? []) {
                for (let at = unfound(firstFrom(sorted, first)); (sorted[at]?.port ?? MAX_PORT + 1) <= last; at = unfound(at)) {
                    found.set(sorted[at] as ServiceInput, index);
                    find(at);
                }
            }
        }
    }
    return found;
}

/** Which of so many places are not found yet: the next one from a place on, or their number. What lies between is passed over ever more quickly. */
function notFound(count: number) {
    const next = Uint32Array.from({ length: count + 1 }, (_, index) => index);
    const after = (place: number): number => next[place] as number;
    return {
        unfound(from: number): number {
            let place = from;
            while (after(place) !== place) {
                next[place] = after(after(place));
                place = after(place);
            }
            return place;
        },
        find(place: number): void {
            next[place] = place + 1;
        },
    };
}

/** The index of the first service of that port or a higher one. */
function firstFrom(sorted: readonly ServiceInput[], port: number): number {
    let [low, high] = [0, sorted.length];
    while (low < high) {
        const middle = (low + high) >>> 1;
        [low, high] = (sorted[middle] as ServiceInput).port < port ? [middle + 1, high] : [low, middle];
    }
    return low;
}

function mergedClosedPorts(mentions: readonly HostInput[]): ClosedPorts {
    const ranges = PROTOCOLS.map((proto) => [proto, mentions.flatMap(({ closed_ports = {} }) => closed_ports[proto] ?? [])] as const);
    return Object.fromEntries(ranges.flatMap(([proto, all]) => (all.length === 0 ? [] : [[proto, mergedRanges(all)]])));
}

/** What one mention says twice is there twice; what another says again is the same. */
function mergedFindings<Finding extends NoteInput | VulnInput>(
    mentions: readonly (readonly Finding[])[],
    keyOf: (finding: Finding) => string | null,
): { readonly kept: readonly Finding[]; readonly leftOut: number } {
    const kept: Finding[] = [];
    const known = new Map<string, number>();
    const alike = new Map<string, number>();
    let leftOut = 0;
    for (const findings of mentions) {
        const told = new Map<string, number>();
        for (const finding of findings) {
            const text = inOneForm(finding);
            const times = (told.get(text) ?? 0) + 1;
            told.set(text, times);
            if (times <= (known.get(text) ?? 0)) {
                continue;
            }

            const key = JSON.stringify([finding.port, finding.proto, keyOf(finding)]);
            const before = alike.get(key) ?? 0;
            if (before >= MAX_ALIKE || kept.length >= MAX_FINDINGS) {
                leftOut += 1;
                continue;
            }

            kept.push(finding);
            known.set(text, times);
            alike.set(key, before + 1);
        }
    }
    return { kept, leftOut };
}

/** The same text for the same data, in whatever order its keys come: a database does not keep it. */
function inOneForm(data: object): string {
    return JSON.stringify(data, (_key, value: unknown) =>
        typeof value === 'object' && value !== null && !Array.isArray(value)
            ? Object.fromEntries(Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)))
            : value,
    );
}

/** Merges what a source says of each address. */
export interface Merging {
    /** What one mention of an address says, or several. */
    merged(mentions: readonly HostInput[]): HostInput;
    /** What was left out, as `refused`. */
    refused(): ImportedCounts;
    /** Says so, where something was. */
    warn(onWarning: OnWarning): void;
}

/** For the hosts of one import. */
export function merging(): Merging {
    const counts = { hosts: 0, services: 0, notes: 0, vulns: 0 };
    return {
        merged(mentions) {
            const [only, another] = mentions;
            if (only !== undefined && another === undefined) {
                return only;
            }

            const { host, leftOut } = mergedMentions(mentions);
            counts.notes += leftOut.notes;
            counts.vulns += leftOut.vulns;
            return host;
        },

        refused: () => eachCount((name) => importCounts({ refused: counts[name] })),

        warn(onWarning) {
            if (counts.notes + counts.vulns > 0) {
                const what = `${counts.notes} notes and ${counts.vulns} vulnerabilities`;
                onWarning(`Left out ${what} of hosts that are named many times: a host keeps ${MAX_ALIKE} that are called the same`);
            }
        },
    };
}
