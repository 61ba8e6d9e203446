import t from 'tap';
import { egressGuard } from '../../../lib/egress/egress-guard.ts';

t.test('opens an address on the given port only', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.1:8080', '[::1]:9090'] });
    t.equal(guard.vet('127.0.0.1', undefined, 8080), null);
    t.match(guard.vet('127.0.0.1', undefined, 8081), /loopback/);
    t.match(guard.vet('127.0.0.2', undefined, 8080), /loopback/);
    t.match(guard.vet('127.0.0.1'), /loopback/);
    t.equal(guard.vetHost('::1', 9090), null);
    t.match(guard.vetHost('::1', 8080), /loopback/);
});

t.test('refuses a port that is none', async (t) => {
    for (const entry of ['127.0.0.1:0', '127.0.0.1:65536', '10.0.0.0/8:80', '[127.0.0.1]:', '[nonsense]:80']) {
        t.throws(() => egressGuard({ allow: [entry] }), { code: 'MISCONFIGURED', field: 'allow[0]' }, entry);
    }
});
