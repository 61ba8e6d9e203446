import { type ClosedPorts, mergedRanges, withoutPorts } from '../../../lib/inventory/closed-ports.ts';
import { indexedAmongAlike, type NoteInput, type VulnInput } from '../../../lib/inventory/findings.ts';
import type { HostInput, ServiceInput } from '../../../lib/inventory/host.ts';

/** A finding with its index among those of the whole host that have service and key in common. */
type Placed<Finding> = readonly [Finding, index: number];

/** A host, or a part of what is below it, with one service of each port: services before the notes and vulnerabilities, which may be about them. */
export interface HostPiece {
    readonly host: Omit<HostInput, 'notes' | 'vulns'>;
    readonly notes: readonly Placed<NoteInput>[];
    readonly vulns: readonly Placed<VulnInput>[];
}

/** How much of a page the texts of notes and vulnerabilities take. */
const PAGE = 4096;

const weightOfNote = ({ data }: NoteInput): number => 1 + JSON.stringify(data).length / PAGE;
const weightOfVuln = ({ info }: VulnInput): number => 1 + (info?.length ?? 0) / PAGE;

function sum<T>(items: readonly T[], weigh: (item: T) => number): number {
    return items.reduce((before, item) => before + weigh(item), 0);
}

/** How much a host is to store: its services, and its notes and vulnerabilities, each as a service, and as many as its text has pages. */
export function weightOf({ services = [], notes = [], vulns = [] }: HostInput): number {
    return services.length + Math.ceil(sum(notes, weightOfNote) + sum(vulns, weightOfVuln));
}

/** The pieces of a batch: itself, or parts of its only host where that weighs more than `most`. */
export function inPieces(hosts: readonly HostInput[], most: number): readonly (readonly HostPiece[])[] {
    const [only] = hosts;
    return hosts.length === 1 && only !== undefined && weightOf(only) > most
        ? partsOf(only, most).map((part) => [part])
        : [hosts.map(whole)];
}

function whole({ services = [], notes = [], vulns = [], closed_ports, ...host }: HostInput): HostPiece {
    const told = lastOfEachPort(services);
    return {
        host: { ...host, services: told, ...(closed_ports !== undefined && { closed_ports: closedWithOthers(closed_ports, told) }) },
        notes: indexedAmongAlike(notes, ({ ntype }) => ntype),
        vulns: indexedAmongAlike(vulns, ({ name }) => name),
    };
}

/** Without the ports that are told one by one. */
function closedWithOthers(closed: ClosedPorts, told: readonly ServiceInput[]): ClosedPorts {
    return Object.fromEntries(
        Object.entries(closed).map(([proto, ranges]) => {
            const ports = told.filter((service) => service.proto === proto).map(({ port }) => port);
            return [proto, withoutPorts(mergedRanges(ranges), ports)];
        }),
    );
}

/**
 * The first part has the fields of the host, the others what is needed to find it and to know whether it was seen. What a part says of a port must be
 * all that is said of it: of several services of one port only the last is left.
 */
function partsOf(input: HostInput, most: number): readonly HostPiece[] {
    const { host, notes, vulns } = whole(input);
    const { services = [], ...fields } = host;
    const { address, state, if_known } = fields;
    const below = [
        ...inParts(services, () => 1, most).map((part) => ({ services: part, notes: [], vulns: [] })),
        ...inParts(notes, ([note]) => weightOfNote(note), most).map((part) => ({ services: [], notes: part, vulns: [] })),
        ...inParts(vulns, ([vuln]) => weightOfVuln(vuln), most).map((part) => ({ services: [], notes: [], vulns: part })),
    ];
    return below.map(({ services: part, ...findings }, index) => {
        const later = { address, ...(state !== undefined && { state }), ...(if_known !== undefined && { if_known }) };
        return { host: { ...(index === 0 ? fields : later), services: part }, ...findings };
    });
}

/** The last of several services of one port is the one that counts. */
function lastOfEachPort(services: readonly ServiceInput[]): readonly ServiceInput[] {
    const last = new Map<string, ServiceInput>();
    for (const service of services) {
        const key = `${service.port}/${service.proto}`;
        last.delete(key);
        last.set(key, service);
    }
    return [...last.values()];
}

/** One item at least in each. */
function inParts<T>(items: readonly T[], weigh: (item: T) => number, most: number): readonly (readonly T[])[] {
    const parts: T[][] = [];
    let weight = most;
    for (const item of items) {
        weight += weigh(item);
        if (weight > most) {
            parts.push([]);
            weight = weigh(item);
        }
        parts.at(-1)?.push(item);
    }
    return parts;
}
