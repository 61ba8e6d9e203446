import fc from 'fast-check';
import t from 'tap';
import { countPorts, inClosedPorts, mergedRanges, type PortRange, withoutPorts } from '../../../lib/inventory/closed-ports.ts';

const arbitraryPort = fc.integer({ min: 1, max: 60 });
const arbitraryRanges = fc.array(
    fc.tuple(arbitraryPort, arbitraryPort).map(([one, other]): PortRange => [Math.min(one, other), Math.max(one, other)]),
    { maxLength: 12 },
);
const ALL = Array.from({ length: 62 }, (_, port) => port);

const isInOneOf = (ranges: readonly PortRange[], port: number): boolean => ranges.some(([first, last]) => first <= port && port <= last);

t.test('tells which ports were seen closed, by protocol', (t) => {
    fc.assert(
        fc.property(arbitraryRanges, arbitraryRanges, arbitraryRanges, (some, more, udp) => {
            const wereClosed = inClosedPorts([{ tcp: some }, { tcp: more, udp }]);
            return ALL.every(
                (port) =>
                    wereClosed({ port, proto: 'tcp' }) === isInOneOf([...some, ...more], port) &&
                    wereClosed({ port, proto: 'udp' }) === isInOneOf(udp, port),
            );
        }),
    );
    t.end();
});

t.test('leaves ports out of merged ranges', (t) => {
    fc.assert(
        fc.property(arbitraryRanges, fc.array(arbitraryPort, { maxLength: 30 }), (ranges, ports) => {
            const left = withoutPorts(mergedRanges(ranges), ports);
            const expected = ALL.filter((port) => isInOneOf(ranges, port) && !ports.includes(port));
            t.same(
                ALL.filter((port) => isInOneOf(left, port)),
                expected,
            );
            t.equal(countPorts(left), expected.length);
        }),
        { numRuns: 50 },
    );
    t.end();
});
