import fc from 'fast-check';
import t from 'tap';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { normaliseHost } from '../../../lib/inventory/host-input.ts';

t.test('needs nothing but an address', async (t) => {
    t.strictSame(normaliseHost({ address: '2001:DB8::1' }), { address: '2001:db8::1' });
});

t.test('moves a zone to scope and an unknown arch to detected_arch', async (t) => {
    t.strictSame(normaliseHost({ address: 'fe80::1%eth0', scope: 'other', arch: 'riscv64' }), {
        address: 'fe80::1',
        scope: 'eth0',
        arch: 'Unknown',
        detected_arch: 'riscv64',
    });
    t.match(normaliseHost({ address: 'fe80::1', scope: 'eth0' }), { scope: 'eth0' });
});

t.test('makes null empty where text goes out, and leaves it where null goes out', async (t) => {
    t.strictSame(
        normaliseHost({ address: '192.0.2.1', mac: null, os_name: null, os_flavor: null, os_sp: null, purpose: null, comm: null }),
        {
            address: '192.0.2.1',
            mac: '',
            os_name: '',
            os_flavor: '',
            os_sp: '',
            purpose: '',
            comm: null,
        },
    );
});

t.test('merges ranges of closed ports, and refuses what is none', async (t) => {
    const ranges = [
        [80, 90],
        [1, 22],
        [23, 23],
        [85, 443],
    ];
    t.strictSame(normaliseHost({ address: '192.0.2.1', closed_ports: { tcp: ranges, udp: [] }, if_known: true }), {
        address: '192.0.2.1',
        closed_ports: {
            tcp: [
                [1, 23],
                [80, 443],
            ],
            udp: [],
        },
        if_known: true,
    });
    for (const bad of [7, [7], [9, 7], [0, 7], [1, 65_536], ['1', 7], [1, 2, 3], [1.5, 2]]) {
        t.throws(() => normaliseHost({ address: '192.0.2.1', closed_ports: { udp: [[1, 2], bad] } }), {
            code: 'INVALID_INPUT',
            field: 'closed_ports.udp[1]',
            message: 'closed_ports.udp[1] must be the first and the last port of a range, from 1 to 65535',
        });
    }
});

t.test('takes an empty name and a null state for not known', async (t) => {
    for (const name of ['', null]) {
        t.strictSame(normaliseHost({ address: '192.0.2.1', name, state: null }), { address: '192.0.2.1' });
    }
});

t.test('fills in what a service leaves open', async (t) => {
    t.strictSame(
        normaliseHost({ address: '192.0.2.1', services: [{ port: 80 }, { port: '53', proto: 'udp', name: null, info: 'x' }] }).services,
        [
            { port: 80, proto: 'tcp', state: 'open' },
            { port: 53, proto: 'udp', state: 'open', name: '', info: 'x' },
        ],
    );
});

t.test('takes an answer of the API back', async (t) => {
    const store = memoryInventory();
    const input: HostInput = { address: 'fe80::1', scope: 'eth0', arch: 'Unknown', detected_arch: 'riscv64', comm: null, state: 'down' };
    await store.importHosts(
        'default',
        (async function* () {
            yield input;
        })(),
    );
    const shown = JSON.parse(JSON.stringify(await store.hosts.get([1], 1)));
    const taken = normaliseHost({ ...shown, services: [{ id: 1, host_id: 1, created_at: 'x', updated_at: 'x', port: 1 }] });

    t.match(taken, input);
    for (const field of ['id', 'workspace_id', 'created_at', 'updated_at', 'service_count', 'history_count']) {
        t.notOk(field in taken, field);
    }
});

t.test('names the field that it refuses, and never the value', async (t) => {
    const cases: [object, string][] = [
        [{}, 'address'],
        [{ address: 7 }, 'address'],
        [{ address: 'SECRET' }, 'address'],
        [{ address: '192.0.2.1', state: 'SECRET' }, 'state'],
        [{ address: '192.0.2.1', colour: 'SECRET' }, 'colour'],
        [{ address: '192.0.2.1', name: 'SECRET\u0000' }, 'name'],
        [{ address: '192.0.2.1', comments: 'SECRET\ud800' }, 'comments'],
        [{ address: '192.0.2.1', info: 'SECRET'.repeat(20_000) }, 'info'],
        [{ address: '192.0.2.1', mac: {} }, 'mac'],
        [{ address: '192.0.2.1', nexpose_data_asset_id: 2 ** 31 }, 'nexpose_data_asset_id'],
        [{ address: '192.0.2.1', services: {} }, 'services'],
        [{ address: '192.0.2.1', services: [{}] }, 'services[0].port'],
        [{ address: '192.0.2.1', services: [{ port: 65536 }] }, 'services[0].port'],
        [{ address: '192.0.2.1', services: [{ port: 1, proto: 'SECRET' }] }, 'services[0].proto'],
        [{ address: '192.0.2.1', services: [{ port: 1, extra: 'SECRET' }] }, 'services[0].extra'],
        [{ address: '192.0.2.1', services: [{ port: 1 }, { port: 2 }, { port: 1, proto: 'tcp' }] }, 'services[2]'],
    ];
    for (const [input, field] of cases) {
        t.throws(
            () => normaliseHost(input),
            { code: 'INVALID_INPUT', field, message: /^((?!SECRET).)*$/s },
            JSON.stringify(input).slice(0, 80),
        );
    }
});

t.test('refuses whatever is no host, and only as input', async (t) => {
    for (const input of [undefined, null, 7, 'x', [], () => {}]) {
        t.throws(() => normaliseHost(input), { name: 'ScanwireError', code: 'INVALID_INPUT' });
    }
    fc.assert(
        fc.property(fc.anything(), fc.dictionary(fc.string(), fc.anything()), (address, fields) => {
            try {
                normaliseHost({ ...fields, address });
                return typeof address === 'string';
            } catch (error) {
                return (error as { code?: string }).code === 'INVALID_INPUT';
            }
        }),
    );
});
