import { once } from 'node:events';
import http, { type IncomingMessage } from 'node:http';
import { gzipSync } from 'node:zlib';
import Boom from '@hapi/boom';
import Hapi, { type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { type ReplayCache, replayCache } from '../../../lib/verify/index.ts';
import { signatureHeaders, vendorNamed } from '../../../lib/webhooks/messages/signature.ts';
import { generateSecret } from '../../../lib/webhooks/messages/signing-secret.ts';
import type { SignatureForm } from '../../../lib/webhooks/setting-values.ts';
import {
    plugin,
    simulate,
    type WebhookArtifacts,
    type WebhookAuthOptions,
    type WebhookAuthRefs,
} from '../../../plugins/webhook-auth/index.ts';

const SECRET = generateSecret();
// hapi's parser makes another text of it.
const BODY = Buffer.from('{ "title" : "Gr\\u00f6\\u00dfe – é",\n"n": 1.50 }');
const HOOK = { method: 'POST', url: '/hook' } as const;

async function receiver(options: Partial<WebhookAuthOptions> = {}): Promise<Server> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    await server.register({ plugin, options: { secrets: [SECRET], ...options } });
    server.route<WebhookAuthRefs>({
        method: '*',
        path: '/hook',
        options: { auth: options.strategy ?? options.instance ?? 'webhook' },
        handler: ({ auth: { credentials, artifacts }, payload }) => ({
            ...credentials,
            payload,
            raw: (artifacts as unknown as WebhookArtifacts | null)?.raw()?.toString('base64'),
        }),
    });
    return server;
}

function signed(...forms: SignatureForm[]): Record<string, string> {
    const vendor = vendorNamed('Acme');
    const signing = { forms, secrets: [SECRET] as const, vendor, body: BODY, id: 'm1', timestamp: new Date() };
    return { 'content-type': 'application/json; charset=UTF-8', 'x-acme-event': 'test', ...Object.fromEntries(signatureHeaders(signing)) };
}

t.test('lets a message in whose bytes were signed, parses it and says what it is', async (t) => {
    const server = await receiver();
    const { statusCode, payload } = await server.inject({ ...HOOK, headers: signed('hex', 'standard-webhooks'), payload: BODY });
    t.equal(statusCode, 200);
    t.match(JSON.parse(payload), {
        forms: ['hex', 'standard-webhooks'],
        id: 'm1',
        kind: 'test',
        time: /T.*Z$/,
        payload: { title: 'Größe – é', n: 1.5 },
        raw: BODY.toString('base64'),
    });
});

t.test('takes a body that comes in pieces, as long as the route allows, over a real connection', async (t) => {
    const server = await receiver();
    await server.start();
    t.teardown(() => server.stop());
    const sent = async (headers: Record<string, string>, pieces: readonly Buffer[]): Promise<number | undefined> => {
        const request = http.request(`${server.info.uri}/hook`, { method: 'POST', agent: false, headers });
        request.on('error', () => {});
        for (const piece of pieces) {
            request.write(piece);
        }
        request.end();
        const [message] = (await once(request, 'response')) as [IncomingMessage];
        message.resume();
        return message.statusCode;
    };
    const pieces = Array.from({ length: BODY.byteLength }, (_, index) => BODY.subarray(index, index + 1));
    t.equal(await sent(signed('base64'), pieces), 200);
    t.equal(await sent(signed('base64'), [...pieces, Buffer.from(' ')]), 401);
    t.equal(await sent(signed('base64'), [BODY, Buffer.alloc(1_100_000, ' ')]), 413);
});

/** Status, body and what is logged of a refusal. */
async function refusal(server: Server, headers: Record<string, string>, payload: Buffer | string = BODY): Promise<object> {
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: 'app' }, (_request, { tags, error }) => logged.push([tags, (error as Error).message]));
    const { statusCode, result } = await server.inject({ ...HOOK, headers, payload });
    server.events.removeAllListeners('request');
    return { statusCode, result, logged };
}

t.test('answers whatever is wrong alike, and says why in the log only', async (t) => {
    const server = await receiver({ secrets: [generateSecret(), SECRET] });
    const answer = { statusCode: 401, result: { error: 'Unauthorized', message: /^The message is not verified/ } };
    const why = (message: RegExp) => ({ ...answer, logged: [[['scanwire', 'webhook-auth', 'unverified'], message]] });
    t.match(await refusal(server, signed('base64'), '{"title":"x"}'), why(/x-acme-signature does not fit/));
    t.match(await refusal(server, signed('base64'), ''), why(/x-acme-signature does not fit/));
    t.match(await refusal(server, { ...signed('standard-webhooks'), 'webhook-id': 'm2' }), why(/webhook-signature does not fit/));
    t.match(await refusal(server, { ...signed('standard-webhooks'), 'webhook-timestamp': '1' }), why(/webhook-signature/));
    t.match(await refusal(server, { ...signed('hex'), 'content-type': 'text/plain' }, `${BODY} `), why(/does not fit/));
});

t.test('takes no request for a message that has no signature, is no POST or has no body', async (t) => {
    const server = await receiver();
    t.equal((await server.inject({ ...HOOK, payload: BODY })).statusCode, 401);
    t.equal((await server.inject({ ...HOOK, headers: signed('base64') })).statusCode, 401);
    for (const method of ['GET', 'HEAD', 'PUT', 'DELETE', 'PATCH']) {
        t.equal((await server.inject({ ...HOOK, method, headers: signed('base64'), payload: BODY })).statusCode, 401, method);
    }

    server.route({ method: 'GET', path: '/read', options: { auth: 'webhook' }, handler: () => 'read' });
    t.equal((await server.inject({ url: '/read', headers: signed('base64') })).statusCode, 401);
});

t.test('verifies what was packed on its way, unpacked', async (t) => {
    const server = await receiver();
    const headers = { ...signed('base64'), 'content-encoding': 'gzip' };
    t.equal((await server.inject({ ...HOOK, headers, payload: gzipSync(BODY) })).statusCode, 200);
    t.equal((await server.inject({ ...HOOK, headers, payload: gzipSync('{}') })).statusCode, 401);
});

t.test('leaves requests without a signature to the other strategies of a route', async (t) => {
    const server = await receiver();
    server.auth.scheme('open', () => ({
        authenticate: ({ headers }, h) =>
            headers['x-pass'] === 'in' ? h.authenticated({ credentials: {} }) : h.unauthenticated(Boom.unauthorized(null, 'open')),
    }));
    server.auth.strategy('open', 'open');
    const handler = ({ auth }: Hapi.Request): string => String(auth.isAuthenticated && auth.strategy);
    server.route({ method: 'POST', path: '/either', options: { auth: { strategies: ['webhook', 'open'] } }, handler });
    server.route({ method: 'POST', path: '/anybody', options: { auth: { strategy: 'webhook', mode: 'try' } }, handler });
    const ask = async (url: string, headers: Record<string, string>, payload: Buffer | string = BODY): Promise<number | string> => {
        const answer = await server.inject({ method: 'POST', url, headers, payload });
        return answer.statusCode === 200 ? answer.payload : answer.statusCode;
    };
    t.equal(await ask('/either', signed('base64')), 'webhook');
    t.equal(await ask('/either', { 'x-pass': 'in' }), 'open');
    t.equal(await ask('/either', {}), 401);
    t.equal(await ask('/either', { ...signed('base64'), 'x-pass': 'in' }, '{}'), 401, 'a wrong signature is nothing for the next strategy');
    t.equal(await ask('/anybody', {}), 'false');
    t.equal(await ask('/anybody', signed('base64'), '{}'), 401, 'a wrong signature is refused in every mode');
});

t.test('refuses a replay, and an empty list of secrets', async (t) => {
    const replays: ReplayCache = replayCache();
    const server = await receiver({ forms: ['standard-webhooks'], replays });
    const headers = signed('standard-webhooks');
    t.equal((await server.inject({ ...HOOK, headers, payload: BODY })).statusCode, 200);
    t.match(await refusal(server, headers), { statusCode: 401, logged: [[Array, /has come before/]] });

    const none = await receiver({ secrets: () => [] });
    t.match(await refusal(none, signed('base64')), { statusCode: 401, logged: [[Array, /no secret for the request/]] });
});

t.test('asks for the secrets of each request, and is unavailable while they are', async (t) => {
    const asked: string[] = [];
    let away = false;
    const secrets: WebhookAuthOptions['secrets'] = async ({ path }) => {
        asked.push(path);
        return away ? Promise.reject(new Error('the store is away')) : [SECRET];
    };
    const server = await receiver({ secrets, instance: 'partners' });
    t.equal((await server.inject({ ...HOOK, headers: signed('base64'), payload: BODY })).statusCode, 200);
    t.strictSame(asked, ['/hook']);
    away = true;
    t.match(await refusal(server, signed('base64')), {
        statusCode: 503,
        logged: [[['scanwire', 'webhook-auth', 'partners', 'error'], 'the store is away']],
    });

    const broken = await receiver({ secrets: () => [SECRET, ''] });
    t.equal(
        (await broken.inject({ ...HOOK, headers: signed('base64'), payload: BODY })).statusCode,
        500,
        'an empty secret verifies nothing',
    );
});

t.test('refuses routes whose body it cannot see, and bodies that it has not seen', async (t) => {
    const server = await receiver();
    const handler = (): string => 'handled';
    server.route({ method: 'POST', path: '/stream', options: { auth: 'webhook', payload: { output: 'stream' } }, handler });
    t.equal((await server.inject({ method: 'POST', url: '/stream', headers: signed('base64'), payload: BODY })).statusCode, 500);

    server.ext('onPreAuth', (request, h) => {
        Object.assign(request, { payload: { title: 'brought along' } });
        return h.continue;
    });
    t.equal((await server.inject({ ...HOOK, headers: signed('base64'), payload: BODY })).statusCode, 401);
    server.route({
        method: 'POST',
        path: '/cut',
        options: { auth: 'webhook', payload: { maxBytes: 10, failAction: 'ignore' } },
        handler,
    });
    t.equal((await server.inject({ method: 'POST', url: '/cut', headers: signed('base64'), payload: BODY })).statusCode, 401);
});

t.test('refuses options that cannot work and names the option', async (t: Test) => {
    const wrong = async (change: object, field: string): Promise<void> => {
        const options = { secrets: [SECRET], ...change } as WebhookAuthOptions;
        const expected = { code: 'MISCONFIGURED', field, message: /^(?!.*whsec_.*whsec_)(?:webhook-auth options: |Vendor)/ };
        await t.rejects(Hapi.server().register({ plugin, options }), expected, field);
    };
    await wrong({ secrets: undefined }, 'secrets');
    await wrong({ secrets: SECRET }, 'secrets');
    await wrong({ secrets: [] }, 'secrets');
    await wrong({ secrets: [undefined] }, 'secrets[0]');
    await wrong({ secrets: [SECRET, ''] }, 'secrets[1]');
    await wrong({ forms: ['md5'] }, 'forms[0]');
    await wrong({ forms: [] }, 'forms');
    await wrong({ tolerance: 0 }, 'tolerance');
    await wrong({ tolerance: 1e9 }, 'tolerance');
    await wrong({ replays: {} }, 'replays');
    await wrong({ replays: replayCache() }, 'replays');
    await wrong({ vendor: 'a b' }, 'vendor');
    await wrong({ unknown: 1 }, 'unknown');
    await wrong({ instance: 'a b' }, 'instance');

    const server = await receiver();
    await t.rejects(server.register({ plugin, options: { secrets: [SECRET] } }), { code: 'MISCONFIGURED', field: 'instance' });
    const again = { secrets: [SECRET], instance: 'other', scheme: 'webhook' };
    await t.rejects(server.register({ plugin, options: again }), { code: 'MISCONFIGURED', field: 'scheme' });
});

t.test('is simulated in the tests of an application', async (t) => {
    const server = await receiver();
    const auth = simulate({ kind: 'scan_finished' });
    const { statusCode, payload } = await server.inject({ ...HOOK, auth, payload: { title: 'x' } });
    t.equal(statusCode, 200);
    t.match(JSON.parse(payload), { kind: 'scan_finished', forms: ['standard-webhooks'], payload: { title: 'x' } });
});
