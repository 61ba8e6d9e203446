import { ScanwireError } from '../errors.ts';
import { type Interval, isWithinOne, mergedIntervals } from '../intervals.ts';
import { PROTOCOLS } from './fields.ts';
import type { ServiceInput } from './host.ts';

/** Ports from the first to the last, both included. */
export type PortRange = Interval<number>;

/** Ports that were seen closed and are not told one by one, by protocol: those of most scans. */
export type ClosedPorts = { readonly [Proto in ServiceInput['proto']]?: readonly PortRange[] };

/** The highest port. */
export const MAX_PORT = 65_535;

/** The same ports in ascending ranges that do not touch each other. */
export function mergedRanges(ranges: readonly PortRange[]): readonly PortRange[] {
    return mergedIntervals(ranges, (last, first) => first <= last + 1);
}

/** The question whether the port of a service is one of those that were seen closed, to be asked of many services. */
export function inClosedPorts(seen: readonly ClosedPorts[]): (service: Pick<ServiceInput, 'port' | 'proto'>) => boolean {
    const merged = new Map(PROTOCOLS.map((proto) => [proto, mergedRanges(seen.flatMap((closed) => closed[proto] ?? []))]));
    return ({ port, proto }) => isWithinOne(merged.get(proto) ?? [], port);
}

/** How many ports merged ranges hold. */
export function countPorts(ranges: readonly PortRange[]): number {
    return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** Merged ranges without some ports. */
export function withoutPorts(ranges: readonly PortRange[], ports: readonly number[]): readonly PortRange[] {
    const taken = ports.toSorted((one, other) => one - other);
    const left: PortRange[] = [];
    let next = 0;
    for (const [first, last] of ranges) {
        let from = first;
        for (; (taken[next] ?? Number.POSITIVE_INFINITY) <= last; next += 1) {
            const port = taken[next] as number;
            if (from < port) {
                left.push([from, port - 1]);
            }
            from = Math.max(from, port + 1);
        }
        if (from <= last) {
            left.push([from, last]);
        }
    }

    return left;
}

/** Reads a list of ports as nmap writes it, `1,3-4,9`; what is no port of a service in it is left out. */
export function portRanges(text: string): readonly PortRange[] {
    const ranges = text.split(',').map((part): PortRange => {
        const [first = '', last = first] = part.split('-');
        return [Math.max(1, Number(first)), Number(last)];
    });
    return mergedRanges(ranges.filter(isRange));
}

/**
 * The closed ports of a host of an import, merged.
 *
 * @throws ScanwireError `INVALID_INPUT` that names the first range that is none.
 */
export function checkedClosedPorts(given: Readonly<Record<string, readonly unknown[]>>): ClosedPorts {
    return Object.fromEntries(
        Object.entries(given).map(([proto, ranges]) => {
            const bad = ranges.findIndex((range) => !isRange(range));
            if (bad >= 0) {
                const field = `closed_ports.${proto}[${bad}]`;
                throw new ScanwireError('INVALID_INPUT', `${field} must be the first and the last port of a range, from 1 to 65535`, {
                    field,
                });
            }

            return [proto, mergedRanges(ranges as readonly PortRange[])];
        }),
    );
}

function isRange(range: unknown): range is PortRange {
    return Array.isArray(range) && range.length === 2 && range.every(isPort) && range[0] <= range[1];
}

function isPort(port: unknown): boolean {
    return Number.isInteger(port) && (port as number) >= 1 && (port as number) <= MAX_PORT;
}
