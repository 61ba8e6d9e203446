/*
 * Access tokens of a certified OpenID provider, `oidc-provider`, that is asked over TLS as one on the internet is.
 */
import type { RequestListener } from 'node:http';
import Provider, { type Configuration } from 'oidc-provider';
import t, { type Test } from 'tap';
import type { Authentication, OAuthClient } from '../../lib/webhooks/exporters/authentication.ts';
import type { Outcome } from '../../lib/webhooks/outcomes/outcome.ts';
import { loopbackSender, ROOT, secureServer } from '../support/token-server.ts';

const CLIENT = { clientId: 'scanwire: one', clientSecret: 'a secret with : and % and + and /, of many letters' };

interface Setting {
    readonly client: OAuthClient;
    /** Tokens that have come to the receiver. */
    readonly tokens: string[];
    readonly asked: () => number;
    /** The provider takes the token back. */
    readonly revoke: (token: string) => Promise<void>;
    readonly send: (oauth: OAuthClient) => Promise<Outcome>;
}

/** A provider, and a receiver that lets it say of every token whether it holds, and for what. */
async function setting(t: Test, method: 'client_secret_basic' | 'client_secret_post'): Promise<Setting> {
    let asked = 0;
    let answer: RequestListener = () => {};
    const issuer = await secureServer(t, (request, response) => {
        asked += Number(request.url === '/token');
        answer(request, response);
    });
    const provider = new Provider(issuer, {
        clients: [
            {
                client_id: CLIENT.clientId,
                client_secret: CLIENT.clientSecret,
                token_endpoint_auth_method: method,
                grant_types: ['client_credentials'],
                redirect_uris: [],
                response_types: [],
                scope: 'events:write',
            },
        ],
        scopes: ['events:write'],
        features: { clientCredentials: { enabled: true }, devInteractions: { enabled: false } },
    } satisfies Configuration);
    answer = provider.callback();

    const tokens: string[] = [];
    const receiver = await secureServer(t, async (request, response) => {
        const [, token = ''] = /^Bearer (.+)$/.exec(request.headers.authorization ?? '') ?? [];
        tokens.push(token);
        const known = await provider.ClientCredentials.find(token);
        request.resume().on('end', () => response.writeHead(known?.scope === 'events:write' ? 204 : 401).end());
    });
    const sender = loopbackSender(t);
    return {
        client: { ...CLIENT, tokenUrl: `${issuer}/token`, scope: 'events:write', authMethod: method, ca: ROOT.cert },
        tokens,
        asked: () => asked,
        revoke: async (token) => (await provider.ClientCredentials.find(token))?.destroy(),
        send(oauth) {
            const authentication: Authentication = { oauth, ca: ROOT.cert };
            return sender.send({ exporterId: 'e', url: receiver, trust: 'strict', headers: [], authentication, body: Buffer.from('{}') });
        },
    };
}

for (const method of ['client_secret_basic', 'client_secret_post'] as const) {
    t.test(`gets one token for many messages, and another when the receiver takes it no more (${method})`, async (t) => {
        const { client, tokens, asked, revoke, send } = await setting(t, method);
        const outcomes = await Promise.all(Array.from({ length: 20 }, () => send(client)));
        t.same(new Set(outcomes.map(({ code }) => code)), new Set(['delivered']), String(outcomes[0]?.detail));
        t.equal(asked(), 1);
        const [first = ''] = tokens;
        t.same(new Set(tokens), new Set([first]));

        await revoke(first);
        t.match(await send(client), { code: 'client_error', status: 401 });
        t.equal((await send(client)).code, 'delivered');
        t.equal(asked(), 2);
        t.notSame(tokens.at(-1), first);
    });
}

t.test('sends nothing where the provider refuses, and says why', async (t) => {
    const { client, tokens, send } = await setting(t, 'client_secret_basic');
    for (const [change, said] of [
        [{ clientSecret: 'another' }, '401: invalid_client'],
        [{ clientId: 'nobody' }, '401: invalid_client'],
        [{ tokenUrl: client.tokenUrl.replace('/token', '/nowhere') }, '404'],
    ] as const) {
        const outcome = await send({ ...client, ...change });
        t.match(outcome, { code: 'token_failed', detail: `No access token: the token server answered ${said}` });
    }
    t.equal(tokens.length, 0);
});
