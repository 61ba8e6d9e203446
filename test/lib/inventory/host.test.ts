import t from 'tap';
import { hostFields, hostSchema, KNOWN_ARCHES, type NewHost, newHost, normaliseArch } from '../../../lib/inventory/host.ts';

const NOW = new Date('2026-11-21T09:30:00Z');

t.test('gives every field a value that the schema of hosts allows', async (t) => {
    const host = { id: 1, workspace_id: 1, created_at: NOW, updated_at: NOW, ...newHost({ address: '192.0.2.1' }) };

    t.strictSame(hostSchema.validate(host).error, undefined);
    t.equal(host.name, '192.0.2.1');
    t.equal(host.state, 'alive');
});

t.test('leaves what nobody knows empty, null or 0', async (t) => {
    const bare: NewHost = {
        address: '192.0.2.7',
        mac: '',
        comm: null,
        name: '192.0.2.7',
        state: 'alive',
        os_name: '',
        os_flavor: '',
        os_sp: '',
        os_lang: null,
        arch: null,
        purpose: '',
        info: null,
        comments: null,
        scope: null,
        virtual_host: null,
        note_count: 0,
        vuln_count: 0,
        service_count: 0,
        host_detail_count: 0,
        exploit_attempt_count: 0,
        cred_count: 0,
        nexpose_data_asset_id: null,
        history_count: 0,
        detected_arch: null,
    };
    t.strictSame(newHost({ address: '192.0.2.7' }), bare);
});

t.test('prefers what the import gives', async (t) => {
    const input = { address: '192.0.2.1', name: 'web', comm: 'x', services: [] };

    t.match(newHost(input), { name: 'web', comm: 'x' });
    t.strictSame(hostFields(input), { address: '192.0.2.1', name: 'web', comm: 'x' });
});

t.test('knows twenty values', async (t) => {
    t.equal(KNOWN_ARCHES.size, 20);
    for (const arch of KNOWN_ARCHES) {
        t.strictSame(normaliseArch({ arch, detected_arch: 'x' }), { arch, detected_arch: 'x' });
    }
});

t.test('keeps the text of any other in detected_arch', async (t) => {
    for (const arch of ['riscv64', 'X86', ' x64', 'unknown']) {
        t.strictSame(normaliseArch({ arch, detected_arch: 'x' }), { arch: 'Unknown', detected_arch: arch });
    }
});

t.test('leaves an arch alone that is not given', async (t) => {
    t.strictSame(normaliseArch({}), {});
    t.strictSame(normaliseArch({ arch: null, detected_arch: 'x' }), { arch: null, detected_arch: 'x' });
});
