import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { connect } from 'node:net';
import * as Boom from '@hapi/boom';
import Hapi, { type Lifecycle, type Server } from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';
import { newApiKey } from '../../../lib/keys/key-form.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import { plugin, simulate, type TokenAuthOptions, type TokenAuthRefs } from '../../../plugins/token-auth/index.ts';
import { MAX_WAITING } from '../../../plugins/token-auth/refusal-pacing.ts';

const ring = keyRing({ current: 'k1', keys: { k1: randomBytes(32) } });

async function guarded(options: Partial<TokenAuthOptions> = {}): Promise<Server> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0 });
    await server.register({ plugin, options: { store: memoryApiKeys(), keyRing: ring, ...options } });
    server.route<TokenAuthRefs>({
        method: 'GET',
        path: '/whoami',
        options: { auth: options.strategy ?? 'token' },
        handler: ({ auth }) => ({ id: auth.credentials.id, name: auth.credentials.name }),
    });
    server.route({ method: 'GET', path: '/open', handler: () => 'open' });
    return server;
}

async function whoami(server: Server, headers: Record<string, string>): Promise<{ status: number; body: string; headers: object }> {
    const { statusCode, payload, headers: answered } = await server.inject({ url: '/whoami', headers });
    return { status: statusCode, body: payload, headers: { ...answered, date: '' } };
}

t.test('lets a valid key in and says whose it is', async (t) => {
    const server = await guarded();
    const { key, ...owner } = await server.plugins['token-auth'].create('nightly job');
    for (const header of ['token', 'Token', 'TOKEN']) {
        const { status, body } = await whoami(server, { [header]: key });
        t.equal(status, 200);
        t.strictSame(JSON.parse(body), owner);
    }
});

t.test('answers every other request alike, and leaves open routes open', async (t) => {
    const server = await guarded();
    const { create, revoke } = server.plugins['token-auth'];
    const { key } = await create('valid');
    const revoked = await create('revoked');
    await revoke(revoked.id);
    const refusals = [
        {},
        { token: '' },
        { token: newApiKey() },
        { token: revoked.key },
        { token: `${key.slice(0, -1)}!` },
        { token: `${key}, ${key}` },
        { token: `Bearer ${key}` },
        { authorization: `Bearer ${key}` },
        { 'x-token': key },
        { cookie: `token=${key}` },
    ];
    const expected = await whoami(server, {});

    t.equal(expected.status, 403);
    t.match(JSON.parse(expected.body), { statusCode: 403, error: 'Forbidden', message: /token.*/ });
    t.match(expected.body, /licence/);
    for (const headers of refusals) {
        t.strictSame(await whoami(server, headers as Record<string, string>), expected, Object.keys(headers).join());
    }
    t.equal((await server.inject(`/whoami?token=${key}`)).statusCode, 403);
    t.equal((await server.inject('/open')).statusCode, 200);
});

t.test('refuses a header that was sent twice, over a real connection', async (t) => {
    const server = await guarded();
    await server.start();
    t.teardown(() => server.stop());
    const { key } = await server.plugins['token-auth'].create('valid');
    const statusOf = async (token: string | string[]): Promise<number | undefined> => {
        const sent = http.get(`${server.info.uri}/whoami`, { agent: false, headers: { token } });
        const [message] = (await once(sent, 'response')) as [IncomingMessage];
        message.resume();
        return message.statusCode;
    };

    t.equal(await statusOf(key), 200);
    t.equal(await statusOf([key, key]), 403);
});

t.test('answers 503 when the store fails, and writes the cause to the log only', async (t) => {
    const cause = new Error('no route to db.internal');
    const server = await guarded({ store: { ...memoryApiKeys(), findByDigest: () => Promise.reject(cause) } });
    const logged: object[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_request, { tags, error }) => logged.push({ tags, error }));
    const { status, body } = await whoami(server, { token: newApiKey() });

    t.equal(status, 503);
    t.notMatch(body, 'internal');
    t.same(logged, [{ tags: ['scanwire', 'token-auth', 'error'], error: cause }]);
    t.equal((await whoami(server, { token: 'garbage' })).status, 403);
});

t.test('says in the log that the use of a key cannot be noted, and lets it in', async (t) => {
    const server = await guarded({ store: { ...memoryApiKeys(), touch: () => Promise.reject(new Error('read only')) } });
    const { key } = await server.plugins['token-auth'].create('one');
    const logged: object[] = [];
    server.events.on('log', ({ tags, error }) => logged.push({ tags, error }));
    t.equal((await whoami(server, { token: key })).status, 200);
    t.equal((await whoami(server, { token: key })).status, 200);
    const message = 'Cannot note when API keys were used last: read only';
    t.match(logged, [{ tags: ['scanwire', 'token-auth', 'error'], error: { message } }]);
});

t.test('makes, lists, reveals and revokes keys', async (t) => {
    const server = await guarded();
    const { create, list, reveal, revoke } = server.plugins['token-auth'];
    const made = await create('one');
    t.match(made.key, /^scw_\w{49}$/);
    t.strictSame(await reveal(made.id), made);
    await revoke(made.id);
    t.match(await list(), [{ id: made.id, name: 'one', revokedAt: Date }]);
    t.equal((await whoami(server, { token: made.key })).status, 403);
});

t.test('takes the clock, the name of the strategy and foreign keys from the options', async (t) => {
    const store = memoryApiKeys();
    const createdAt = new Date('2026-11-21T09:30:00Z');
    const digest = createHash('sha256').update('old-key').digest('hex');
    await store.insert({
        id: randomUUID(),
        name: 'old',
        digest,
        start: 'old-',
        sealed: null,
        createdAt,
        lastUsedAt: null,
        revokedAt: null,
    });
    const server = await guarded({ store, strategy: 'api', acceptForeignKeys: true, revealable: false, clock: () => createdAt });

    t.equal((await whoami(server, { token: 'old-key' })).status, 200);
    const { key } = await server.plugins['token-auth'].create('new');
    t.equal((await whoami(server, { token: key })).status, 200);
    t.match(await server.plugins['token-auth'].list(), [{ lastUsedAt: createdAt }, { createdAt }]);
});

t.test('lets the tests of a host in without a key', async (t) => {
    const server = await guarded();
    const { statusCode, result } = await server.inject({ url: '/whoami', auth: simulate({ name: 'nightly job' }) });

    t.equal(statusCode, 200);
    t.match(result, { name: 'nightly job' });
});

t.test('leaves it to a route whether a key is needed', async (t) => {
    const server = await guarded();
    server.route({
        method: 'GET',
        path: '/try',
        options: { auth: { strategy: 'token', mode: 'try' } },
        handler: ({ auth }) => ({ isAuthenticated: auth.isAuthenticated }),
    });

    t.strictSame((await server.inject('/try')).result, { isAuthenticated: false });
});

/** A scheme as hapi's own ones are: a header that is missing is missing. */
function addBasic(server: Server): void {
    server.auth.scheme('basic', () => ({
        authenticate({ headers: { authorization } }, h) {
            return authorization === undefined
                ? h.unauthenticated(Boom.unauthorized(null, 'Basic'))
                : h.authenticated({ credentials: { name: 'by basic' } });
        },
    }));
    server.auth.strategy('basic', 'basic');
}

t.test('lets other strategies of a route have their turn where the header is missing', async (t) => {
    const server = await guarded();
    addBasic(server);
    const handler: Lifecycle.Method = ({ auth }) => ({ by: auth.strategy });
    server.route({ method: 'GET', path: '/token-first', options: { auth: { strategies: ['token', 'basic'] } }, handler });
    server.route({ method: 'GET', path: '/basic-first', options: { auth: { strategies: ['basic', 'token'] } }, handler });
    const { key } = await server.plugins['token-auth'].create('ci');
    for (const url of ['/token-first', '/basic-first']) {
        t.same((await server.inject({ url, headers: { authorization: 'Basic eA==' } })).result, { by: 'basic' }, url);
        t.same((await server.inject({ url, headers: { token: key } })).result, { by: 'token' }, url);
        t.same((await server.inject({ url, headers: { token: '', authorization: 'Basic eA==' } })).result, { by: 'basic' }, url);
        const neither = await server.inject({ url });
        t.equal(neither.statusCode, 401, url);
        t.match(neither.headers['www-authenticate'], /token/);
        t.match(neither.headers['www-authenticate'], /Basic/);
        t.equal((await server.inject({ url, headers: { token: newApiKey() } })).statusCode, 403, `${url}: a wrong key is no missing one`);
    }
});

t.test('lets anybody in where a route says so, and nobody with a wrong key where it is optional', async (t) => {
    const server = await guarded();
    const handler: Lifecycle.Method = ({ auth }) => ({ isAuthenticated: auth.isAuthenticated });
    server.auth.default({ strategy: 'token', mode: 'optional' });
    server.route({ method: 'GET', path: '/by-default', handler });
    server.route({ method: 'GET', path: '/try', options: { auth: { strategy: 'token', mode: 'try' } }, handler });
    const { key } = await server.plugins['token-auth'].create('ci');
    const answer = async (url: string, token?: string) => {
        const { statusCode, result } = await server.inject({ url, headers: token === undefined ? {} : { token } });
        return [statusCode, (result as { isAuthenticated?: boolean } | undefined)?.isAuthenticated];
    };
    t.same(await answer('/by-default'), [200, false]);
    t.same(await answer('/by-default', key), [200, true]);
    t.same((await answer('/by-default', newApiKey()))[0], 403);
    t.same(await answer('/try'), [200, false]);
    t.same(await answer('/try', newApiKey()), [200, false]);
    t.equal((await server.inject('/whoami')).statusCode, 403, 'where a key is all that a route takes');
});

t.test('takes the name of its scheme from the options, and names one that is taken', async (t) => {
    const server = Hapi.server();
    server.auth.scheme('token', () => ({ authenticate: (_, h) => h.authenticated({ credentials: {} }) }));
    server.auth.strategy('host', 'token');
    const options = { store: memoryApiKeys(), keyRing: ring };
    await t.rejects(server.register({ plugin, options }), {
        code: 'MISCONFIGURED',
        field: 'scheme',
        message: /^token-auth options: scheme must be/,
    });

    const other = Hapi.server();
    other.auth.scheme('token', () => ({ authenticate: (_, h) => h.authenticated({ credentials: {} }) }));
    other.auth.strategy('host', 'token');
    const named = { ...options, scheme: 'api-key' };
    await t.rejects(other.register({ plugin, options: { ...named, strategy: 'host' } }), { code: 'MISCONFIGURED', field: 'strategy' });
    await other.register({ plugin, options: { ...options, scheme: 'key', strategy: 'api', instance: 'second' } });
    // A strategy of the host's own, by the scheme.
    other.auth.strategy('own', 'key');
    const { key } = await other.plugins['token-auth'].of('second').create('ci');
    for (const strategy of ['api', 'own']) {
        other.route({ method: 'GET', path: `/${strategy}`, options: { auth: strategy }, handler: () => 'in' });
        t.equal((await other.inject({ url: `/${strategy}`, headers: { token: key } })).statusCode, 200, strategy);
        t.equal((await other.inject(`/${strategy}`)).statusCode, 403, strategy);
    }
});

t.test('refuses options that cannot work, naming the field', async (t) => {
    const store = memoryApiKeys();
    const cases: [object | undefined, string][] = [
        [undefined, 'store'],
        [{ keyRing: ring }, 'store'],
        [{ store: {}, keyRing: ring }, 'store must have the function insert'],
        [{ store }, 'keyRing'],
        [{ store, keyRing: 'SECRET' }, 'keyRing'],
        [{ store, keyRing: ring, revealable: 'SECRET' }, 'revealable'],
        [{ store, keyRing: ring, header: 'SECRET' }, 'header'],
    ];
    for (const [options, message] of cases) {
        const server = Hapi.server();
        const registered = server.register({ plugin, options: options as TokenAuthOptions });
        await t.rejects(registered, { code: 'MISCONFIGURED', message: new RegExp(`^token-auth options: ${message}`) });
        await registered.catch((error: Error) => t.notMatch(error.message, 'SECRET'));
    }
});

t.test('does not start without the very sealing key that the stored keys need', async (t) => {
    const store = memoryApiKeys();
    await (await guarded({ store })).plugins['token-auth'].create('one');
    for (const id of ['k1', 'k2']) {
        const server = await guarded({ store, keyRing: keyRing({ current: id, keys: { [id]: randomBytes(32) } }) });
        await t.rejects(server.initialize(), { code: 'MISCONFIGURED', field: 'keyRing', message: /k1/ }, id);
    }
});

t.test('starts while the store is down', async (t) => {
    const server = await guarded({ store: { ...memoryApiKeys(), list: () => Promise.reject(new Error('down')) } });

    await t.resolves(server.initialize());
});

t.test('keeps answers that took a key out of caches, unless their route or their handler says how long', async (t) => {
    const server = await guarded();
    const options = { auth: 'token' } as const;
    server.route({
        method: 'GET',
        path: '/kept',
        options: { ...options, cache: { expiresIn: 60_000, privacy: 'private' } },
        handler: () => 1,
    });
    server.route({ method: 'GET', path: '/own', options, handler: (_, h) => h.response('1').header('cache-control', 'private') });
    server.route({ method: 'GET', path: '/fails', options, handler: () => Promise.reject(new Error('x')) });
    const { key } = await server.plugins['token-auth'].create('ci');
    const cached = async (url: string): Promise<unknown> =>
        (await server.inject({ url, headers: { token: key } })).headers['cache-control'];
    t.equal(await cached('/whoami'), 'no-store');
    t.equal(await cached('/fails'), 'no-store');
    t.equal(await cached('/kept'), 'max-age=60, must-revalidate, private');
    t.equal(await cached('/own'), 'private');
    t.equal(await cached('/open'), 'no-cache', 'as hapi has it');
});

t.test('drops a connection that floods it with wrong keys, and lets others in', async (t) => {
    const server = await guarded();
    await server.start();
    t.teardown(() => server.stop());
    const { key } = await server.plugins['token-auth'].create('valid');
    const flood = connect(Number(server.info.port), '127.0.0.1').on('error', () => {});
    flood.write(`GET /whoami HTTP/1.1\r\nHost: a\r\ntoken: ${newApiKey()}\r\n\r\n`.repeat(MAX_WAITING + 100));
    await once(flood.resume(), 'close');
    t.equal((await whoami(server, { token: key })).status, 200);
    t.equal((await whoami(server, { token: newApiKey() })).status, 403, 'who has left keeps nobody waiting');
});
