import t from 'tap';
import { egressGuard } from '../../../lib/webhooks/egress-guard.ts';
import { checkReceiverUrl } from '../../../lib/webhooks/receiver-url.ts';

t.test('opens an address on the given port only', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.1:8080', '[::1]:9090'] });
    t.equal(guard.vet('127.0.0.1', undefined, 8080), null);
    t.match(guard.vet('127.0.0.1', undefined, 8081), /loopback/);
    t.match(guard.vet('127.0.0.2', undefined, 8080), /loopback/);
    t.match(guard.vet('127.0.0.1'), /loopback/);
    t.equal(guard.vetHost('::1', 9090), null);
    t.match(guard.vetHost('::1', 8080), /loopback/);
});

t.test('judges the port of a receiver URL, the default one included', async (t) => {
    const guard = egressGuard({ allow: ['127.0.0.1:8080', '10.1.2.3:443'] });
    t.equal(checkReceiverUrl('http://127.0.0.1:8080/in', guard), 'http://127.0.0.1:8080/in');
    t.equal(checkReceiverUrl('https://10.1.2.3/', guard), 'https://10.1.2.3/');
    t.throws(() => checkReceiverUrl('http://10.1.2.3/', guard), { code: 'INVALID_INPUT', field: 'url' });
    t.throws(() => checkReceiverUrl('http://127.0.0.1/', guard), { code: 'INVALID_INPUT', field: 'url' });
});

t.test('refuses a port that is none', async (t) => {
    for (const entry of ['127.0.0.1:0', '127.0.0.1:65536', '10.0.0.0/8:80', '[127.0.0.1]:', '[nonsense]:80']) {
        t.throws(() => egressGuard({ allow: [entry] }), { code: 'MISCONFIGURED', field: 'allow[0]' }, entry);
    }
});
