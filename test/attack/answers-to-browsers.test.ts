import { readFileSync } from 'node:fs';
import type { IncomingHttpHeaders } from 'node:http';
import { request } from 'node:https';
import t from 'tap';
import { json, type Served, serve, usedDataOf } from '../support/served.ts';

/** Status and headers of an answer, over the wire. */
function answerTo({ url, certificate }: Served, path: string, token?: string, method = 'GET'): Promise<[number, IncomingHttpHeaders]> {
    return new Promise((resolve, reject) => {
        const headers = token === undefined ? {} : { token };
        const outgoing = request(`${url}${path}`, { method, ca: readFileSync(certificate), headers, agent: false }, (incoming) => {
            incoming.resume().on('end', () => resolve([incoming.statusCode ?? 0, incoming.headers]));
        });
        outgoing.on('error', reject).end();
    });
}

t.test('leaves a browser nothing to guess, to keep or to frame', async (t) => {
    const data = await usedDataOf(t);
    const { served } = await serve(t, data, '--hsts', '86400');
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci', '--scope', 'inventory:read', '--scope', 'records:read');
    const withKey: [string, number][] = [
        ['/rest_api/v2/base', 200],
        ['/rest_api/v2/workspaces', 200],
        ['/rest_api/v2/workspaces/99', 404],
        ['/rest_api/v2/nothing', 404],
        ['/https-record-schema', 200],
        ['/https-record-schema/records', 200],
    ];
    for (const [path, status] of withKey) {
        const [answered, headers] = await answerTo(served, path, key);
        t.equal(answered, status, path);
        t.match(headers, {
            'cache-control': 'no-store',
            'x-content-type-options': 'nosniff',
            'x-frame-options': 'DENY',
            'referrer-policy': 'no-referrer',
            'strict-transport-security': 'max-age=86400',
        });
    }

    for (const [path, status] of [
        ['/rest_api/v2/base', 403],
        ['/nothing', 404],
        ['/-/ready', 200],
    ] as const) {
        const [answered, headers] = await answerTo(served, path);
        t.equal(answered, status, path);
        t.match(headers, {
            'cache-control': status === 403 ? 'no-store' : /^no-(?:cache|store)$/,
            'x-content-type-options': 'nosniff',
            'strict-transport-security': 'max-age=86400',
        });
    }

    const [, page] = await answerTo(served, '/rest_api/v2/base', key);
    t.match(page, { 'content-type': /^text\/html/, 'content-security-policy': /^default-src 'none';.* frame-ancestors 'none'$/ });
});

t.test('speaks of HSTS only where it was told to', async (t) => {
    const { served } = await serve(t, await usedDataOf(t));
    const [, headers] = await answerTo(served, '/-/ready');
    t.notOk('strict-transport-security' in headers);
});
