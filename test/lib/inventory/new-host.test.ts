import t from 'tap';
import { hostSchema } from '../../../lib/inventory/host.ts';
import { hostFields, newHost } from '../../../lib/inventory/new-host.ts';

const NOW = new Date('2026-11-21T09:30:00Z');

t.test('gives every field a value that the schema of hosts allows', async (t) => {
    const host = { id: 1, workspace_id: 1, created_at: NOW, updated_at: NOW, ...newHost({ address: '192.0.2.1' }) };

    t.strictSame(hostSchema.validate(host).error, undefined);
    t.equal(host.name, '192.0.2.1');
    t.equal(host.state, 'alive');
});

t.test('prefers what the import gives', async (t) => {
    const input = { address: '192.0.2.1', name: 'web', comm: 'x', services: [] };

    t.match(newHost(input), { name: 'web', comm: 'x' });
    t.strictSame(hostFields(input), { address: '192.0.2.1', name: 'web', comm: 'x' });
});
