import dgram from 'node:dgram';
import { EventEmitter } from 'node:events';
import net from 'node:net';
import t from 'tap';
import { connectVetted } from '../../../lib/egress/connect.ts';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { nameResolver } from '../../../lib/egress/resolver.ts';
import { knownRoutes } from '../../../lib/egress/routes.ts';
import { nameServer } from '../../support/name-server.ts';

const withCode = (code: string): Error => Object.assign(new Error('secret text'), { code });
const [A, B, C] = ['192.0.2.1', '2001:db8::1', '192.0.2.3'] as const;

t.test('no route is a fault of this machine as long as nobody else is reached, once somebody was', async (t) => {
    const routes = knownRoutes();
    t.notOk(routes.isOurs(A, withCode('ENETUNREACH')), 'it may never have had a network');
    routes.reached(C);
    t.ok(routes.isOurs(A, withCode('ENETUNREACH')));
    t.ok(routes.isOurs(B, withCode('ENETDOWN')));
    t.ok(routes.isOurs(A, withCode('ENETUNREACH')));
    t.notOk(routes.isOurs(A, withCode('EHOSTUNREACH')), 'a host that is dead');
    t.notOk(routes.isOurs(A, withCode('ECONNREFUSED')));

    t.ok(routes.isOurs(A, withCode('ENETUNREACH')));
    routes.reached(C);
    t.notOk(routes.isOurs(A, withCode('ENETUNREACH')), 'another is reached');
    t.notOk(routes.isOurs(A, withCode('ENETUNREACH')), 'and it stays so');
    routes.reached(A);
    t.ok(routes.isOurs(A, withCode('ENETUNREACH')), 'until it is reached');
    t.notOk(routes.isOurs(B, withCode('ENETUNREACH')));
});

t.test('the loopback interface says nothing of the network', async (t) => {
    const routes = knownRoutes();
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
        routes.reached(address);
    }
    t.notOk(routes.isOurs(A, withCode('ENETUNREACH')));
});

t.test('no more addresses are waited for than are noted', async (t) => {
    const routes = knownRoutes();
    routes.reached(C);
    for (let index = 0; index < 4_096; index += 1) {
        t.ok(routes.isOurs(`10.0.${index >> 8}.${index & 255}`, withCode('ENETUNREACH')));
    }
    t.notOk(routes.isOurs(A, withCode('ENETUNREACH')));
    t.ok(routes.isOurs('10.0.0.1', withCode('ENETUNREACH')));
});

t.test('a connection fails as interrupted while this machine has lost its network', async (t) => {
    let answer = 'connect';
    const socket = (): net.Socket => {
        const made = new net.Socket();
        const address = answer === 'connect' ? C : undefined;
        Object.defineProperty(made, 'remoteAddress', { value: address });
        process.nextTick(() => (answer === 'connect' ? made.emit('connect') : made.destroy(withCode(answer))));
        return made;
    };
    t.intercept(net, 'connect', { value: socket });
    const connect = connectVetted({ guard: egressGuard({ allow: ['192.0.2.0/24'] }), dnsTimeout: 1_000, connectTimeout: 1_000 });
    const to = (host: string): Promise<net.Socket> =>
        connect({ host, port: 443, signal: new AbortController().signal, progress: { address: null, dns: null, connect: null } });

    (await to(C)).destroy();
    answer = 'ENETUNREACH';
    await t.rejects(to(A), { code: 'interrupted', message: `This machine has no route to ${A}, nor to anybody else` });
    answer = 'EHOSTUNREACH';
    await t.rejects(to(A), { code: 'connect_failed' });
    answer = 'EADDRNOTAVAIL';
    await t.rejects(to(A), { code: 'interrupted' });
    answer = 'ENETUNREACH';
    await t.rejects(to(A), { code: 'interrupted' });
    answer = 'connect';
    (await to(C)).destroy();
    answer = 'ENETUNREACH';
    await t.rejects(to(A), { code: 'connect_failed' });
});

t.test('a name that nobody tells is a fault of this machine once that has lost its network', async (t) => {
    let answer: 'fails' | 'unknown' | readonly string[] = 'fails';
    const { address, close } = await nameServer(() => answer, 0);
    t.teardown(close);
    let hasRoute = true;
    const socket = (): EventEmitter =>
        Object.assign(new EventEmitter(), {
            connect(this: EventEmitter) {
                process.nextTick(() => (hasRoute ? this.emit('connect') : this.emit('error', withCode('ENETUNREACH'))));
            },
            close() {},
        });
    t.intercept(dgram, 'createSocket', { value: socket });
    const resolve = nameResolver({ timeout: 2_000, maxPending: 8, nameServers: [address] });
    const find = (name = 'shop.example') => resolve(name, new AbortController().signal);

    hasRoute = false;
    await t.rejects(find(), { code: 'dns_failed' }, 'it may never have had a network');
    [hasRoute, answer] = [true, [C]];
    t.same(await find(), [C]);
    answer = 'fails';
    await t.rejects(find(), { code: 'dns_failed' }, 'it has its network');
    hasRoute = false;
    await t.rejects(find(), { code: 'interrupted', message: 'This machine has lost its network: shop.example could not be resolved' });
    answer = 'unknown';
    await t.rejects(find(), { code: 'dns_not_found' }, 'it is told that there is no such name');
    [hasRoute, answer] = [true, 'fails'];
    await t.rejects(find(), { code: 'dns_failed' });
});
