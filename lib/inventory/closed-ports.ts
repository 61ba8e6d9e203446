import { ScanwireError } from '../errors.ts';
import type { ServiceInput } from './host.ts';

/** Ports from the first to the last, both included. */
export type PortRange = readonly [first: number, last: number];

/** Ports that were seen closed and are not told one by one, by protocol: those of most scans. */
export type ClosedPorts = { readonly [Proto in ServiceInput['proto']]?: readonly PortRange[] };

const MAX_PORT = 65_535;

/** The same ports in ascending ranges that do not touch each other. */
export function mergedRanges(ranges: readonly PortRange[]): readonly PortRange[] {
    const merged: [number, number][] = [];
    for (const [first, last] of ranges.toSorted((one, other) => one[0] - other[0])) {
        const before = merged.at(-1);
        if (before !== undefined && first <= before[1] + 1) {
            before[1] = Math.max(before[1], last);
        } else {
            merged.push([first, last]);
        }
    }

    return merged;
}

/** Whether one of the ranges holds the port. */
export function holdPort(ranges: readonly PortRange[], port: number): boolean {
    return ranges.some(([first, last]) => first <= port && port <= last);
}

/** How many ports merged ranges hold. */
export function countPorts(ranges: readonly PortRange[]): number {
    return ranges.reduce((sum, [first, last]) => sum + last - first + 1, 0);
}

/** Merged ranges without some ports. */
export function withoutPorts(ranges: readonly PortRange[], ports: readonly number[]): readonly PortRange[] {
    let left = ranges;
    for (const port of ports) {
        left = left.flatMap(([first, last]): readonly PortRange[] => {
            const parts: readonly PortRange[] = [
                [first, port - 1],
                [port + 1, last],
            ];
            return first <= port && port <= last ? parts.filter(([from, to]) => from <= to) : [[first, last]];
        });
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
