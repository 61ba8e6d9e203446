import assert from 'node:assert';
import fc from 'fast-check';
import t from 'tap';
import { MAX_ALIKE } from '../../../lib/inventory/findings.ts';
import type { HostInput, ServiceInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import { merging } from '../../../lib/inventory/mentions.ts';

const address = '192.0.2.7';
const open = (port: number, more: Partial<ServiceInput> = {}): ServiceInput => ({ port, proto: 'tcp', state: 'open', ...more });

function merged(...mentions: readonly Omit<HostInput, 'address'>[]): HostInput {
    return merging().merged(mentions.map((mention) => ({ address, ...mention })));
}

t.test('leaves one mention as it is', async (t) => {
    const only = { address, services: [open(80), open(80)] };
    t.equal(merging().merged([only]), only);
});

t.test('takes of fields what is said last', async (t) => {
    t.same(merged({ name: 'a', os_name: 'Linux', state: 'alive' }, { name: 'b', comments: null }), {
        ...{ address, name: 'b', os_name: 'Linux', state: 'alive', comments: null },
    });
});

t.test('takes as many mentions as a source has', async (t) => {
    const mentions = Array.from({ length: 300_000 }, (_, index): HostInput => ({ address, name: `name ${index}` }));
    t.same(merging().merged(mentions), { address, name: 'name 299999' });
});

t.test('closes services in no more time than their number and that of the mentions need', async (t) => {
    const services = Array.from({ length: 20_000 }, (_, index) => open(index + 1));
    const closing = Array.from({ length: 20_000 }, (): Omit<HostInput, 'address'> => ({ closed_ports: { tcp: [[1, 65_535]] } }));
    const before = process.cpuUsage();
    const host = merged({ services }, ...closing, { services: [open(7)] });
    const { user } = process.cpuUsage(before);
    t.equal(host.services?.filter(({ state }) => state === 'closed').length, 19_999);
    t.ok(user < 1_000_000, `${user} µs`);
});

t.test('closes what the naive reading closes', async () => {
    const mention = fc.record({
        services: fc.array(
            fc.record({ port: fc.integer({ min: 1, max: 6 }), proto: fc.constantFrom('tcp', 'udp'), state: fc.constant('open') }),
        ),
        closed_ports: fc.dictionary(
            fc.constantFrom('tcp', 'udp'),
            fc.array(fc.tuple(fc.integer({ min: 1, max: 6 }), fc.nat({ max: 2 })).map(([first, more]) => [first, first + more])),
        ),
    });
    fc.assert(
        fc.property(fc.array(mention as fc.Arbitrary<Omit<HostInput, 'address'>>, { minLength: 2, maxLength: 6 }), (mentions) => {
            const { services = [] } = merged(...mentions);
            for (const { port, proto, state } of services) {
                const told = mentions.findLastIndex((one) =>
                    one.services?.some((service) => service.port === port && service.proto === proto),
                );
                const isClosed = mentions
                    .slice(told + 1)
                    .some((one) => one.closed_ports?.[proto]?.some(([first, last]) => first <= port && port <= last));
                assert.strictEqual(state, isClosed ? 'closed' : 'open');
            }
        }),
    );
});

t.test('makes no host only where none of the mentions would make one', async (t) => {
    const down = { state: 'down', if_known: true } as const;
    t.same(merged(down, down), { address, state: 'down', if_known: true });
    t.same(merged(down, { state: 'alive' }), { address, state: 'alive' });
    t.same(merged({ state: 'alive' }, down), { address, state: 'down' });
});

t.test('keeps what is known of a service that is told again without', async (t) => {
    const { services } = merged(
        { services: [open(80, { name: 'http', info: 'nginx' }), open(22)] },
        { services: [open(80, { state: 'filtered' }), { ...open(22), proto: 'udp' }] },
    );
    t.same(services, [open(80, { state: 'filtered', name: 'http', info: 'nginx' }), open(22), { ...open(22), proto: 'udp' }]);
});

t.test('closes a service among the closed ports of a later mention, and no other', async (t) => {
    const closed = { closed_ports: { tcp: [[1, 100]] } } as const;
    t.same(merged({ services: [open(80), open(8080)] }, closed), {
        ...{ address, services: [open(80, { state: 'closed' }), open(8080)], closed_ports: { tcp: [[1, 100]] } },
    });
    t.same(merged(closed, { services: [open(80)] }).services, [open(80)]);
    t.same(merged({ services: [open(80)] }, { ...closed, services: [open(80)] }).services, [open(80)]);
    t.same(merged(closed, { closed_ports: { tcp: [[90, 200]], udp: [[1, 1]] } }).closed_ports, { tcp: [[1, 200]], udp: [[1, 1]] });
});

t.test('knows what is said again, in whatever order its keys come', async (t) => {
    const note = { ntype: 'a', data: { x: 1, y: [{ b: 2, c: null }] } };
    const again = { data: { y: [{ c: null, b: 2 }], x: 1 }, ntype: 'a' };
    t.same(merged({ notes: [note, note] }, { notes: [again] }, { notes: [again, again, again] }).notes, [note, note, again]);
    t.equal(merged({ notes: [note] }, { notes: [{ ...note, seen: true }] }).notes?.length, 2);
});

t.test('keeps so many that are called the same, and counts and tells of the others', async (t) => {
    const mentions = Array.from({ length: MAX_ALIKE + 2 }, (_, index) => ({
        ...{ address, notes: [{ ntype: 'a', data: { index } }] },
        vulns: [{ name: index < 3 ? 'a' : `${index}`, info: `${index}` }],
    }));
    const { merged, refused, warn } = merging();
    const { notes = [], vulns = [] } = merged(mentions);
    const warnings: string[] = [];
    warn((message) => warnings.push(message));

    t.same([notes.length, vulns.length], [MAX_ALIKE, MAX_ALIKE + 2]);
    t.same(refused().notes, importCounts({ refused: 2 }));
    t.same(refused().vulns, importCounts());
    t.same(warnings, [
        'Left out 2 notes and 0 vulnerabilities of hosts that are named many times: a host keeps 1000 that are called the same',
    ]);
});
