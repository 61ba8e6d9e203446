import t from 'tap';
import { connectionCode } from '../../../lib/egress/connection-code.ts';

const withCode = (code: string): Error => Object.assign(new Error('secret text'), { code });

t.test('names what an error means, by its code and else by where it came up', async (t) => {
    t.equal(connectionCode(withCode('EMFILE'), 'connect_failed'), 'interrupted');
    t.equal(connectionCode(withCode('ECONNREFUSED'), 'connect_failed'), 'connect_refused');
    t.equal(connectionCode(withCode('ENOTFOUND'), 'dns_failed'), 'dns_not_found');
    t.equal(connectionCode(withCode('ESTRANGE'), 'dns_failed'), 'dns_failed');
    t.equal(connectionCode(withCode('ESTRANGE'), 'connect_failed'), 'connect_failed');
    t.equal(connectionCode(undefined, 'connect_failed'), 'connect_failed');
});
