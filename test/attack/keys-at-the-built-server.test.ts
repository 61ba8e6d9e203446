import { request } from 'node:https';
import { connect } from 'node:tls';
import t, { type Test } from 'tap';
import { newApiKey } from '../../lib/keys/key-form.ts';
import { PER_SECOND } from '../../plugins/token-auth/refusal-pacing.ts';
import { fixture, json, serve, usedDataOf } from '../support/served.ts';

/*
 * Keys where they do not belong, and keys that are none, as strangers send them to the server that `serve` starts. Every route and every form of an
 * id is in the files beside this one, which ask the plugins.
 */

const ROUTES: Readonly<Record<string, readonly [path: string, status: number, body?: string]>> = {
    'inventory:read': ['/rest_api/v2/workspaces', 200],
    'records:read': ['/https-record-schema/records', 200],
    'deliveries:read': ['/webhook-exporter/deliveries', 200],
    'events:publish': ['/webhook-exporter/events', 400, '{}'],
};

/** A server with two workspaces, and what a stranger can do with it. */
async function attacked(t: Test) {
    const data = await usedDataOf(t);
    for (const workspace of ['one', 'two']) {
        await json(data, 'import', fixture('scans/services.xml'), '--workspace', workspace);
    }
    const { served } = await serve(t, data);
    return {
        port: Number(new URL(served.url).port),
        keyWith: async (...args: readonly string[]) => (await json<{ key: string }>(data, 'keys', 'create', 'stranger', ...args)).key,
        asked: (path: string, token: string, body?: string) => askedOf(served.url, path, token, body),
    };
}

interface Answer {
    readonly status: number | undefined;
    readonly text: string;
}

async function askedOf(url: string, path: string, token: string, body?: string): Promise<Answer> {
    return await new Promise((resolve, reject) => {
        const headers = { token, ...(body !== undefined && { 'content-type': 'application/json' }) };
        const options = { method: body === undefined ? 'GET' : 'POST', headers, rejectUnauthorized: false, agent: false };
        const outgoing = request(`${url}${path}`, options, async (incoming) => {
            const parts = await incoming.setEncoding('utf8').toArray();
            resolve({ status: incoming.statusCode, text: parts.join('') });
        });
        outgoing.on('error', reject).end(body);
    });
}

t.test('a stranger with a key, and without one', async (t) => {
    const { port, keyWith, asked } = await attacked(t);

    t.test('a key gets 403 wherever its scope does not lead, whatever else it may do', async (t) => {
        const scopes = [...Object.keys(ROUTES), 'records:write', 'admin'];
        for (const [scope, [path, status, body]] of Object.entries(ROUTES)) {
            const others = scopes.filter((other) => other !== scope).flatMap((other) => ['--scope', other]);
            t.equal((await asked(path, await keyWith('--scope', scope), body)).status, status, scope);
            t.equal((await asked(path, await keyWith(...others), body)).status, 403, `all but ${scope}`);
        }

        const administrator = await keyWith('--scope', 'admin');
        for (const path of ['/admin-console/keys', '/admin-console/exporters', '/admin/keys', '/metrics']) {
            t.not((await asked(path, administrator)).status, 200, path);
        }
    });

    t.test('a key of one workspace gets of another what it gets of one that is not there', async (t) => {
        const rows = JSON.parse((await asked('/rest_api/v2/workspaces', await keyWith())).text) as {
            readonly id: number;
            readonly name: string;
        }[];
        const idOf = (name: string): string => String(rows.find((row) => row.name === name)?.id);
        const key = await keyWith('--workspace', idOf('one'));
        t.match(JSON.parse((await asked('/rest_api/v2/workspaces', key)).text), [{ name: 'one' }]);
        t.equal((await asked(`/rest_api/v2/workspaces/${idOf('one')}/hosts`, key)).status, 200);
        for (const below of ['', '/hosts', '/services', '/hosts/1', '/vulns?limit=1']) {
            const other = await asked(`/rest_api/v2/workspaces/${idOf('two')}${below}`, key);
            t.equal(other.status, 404, below);
            t.strictSame(other, await asked(`/rest_api/v2/workspaces/999999${below}`, key), below);
        }
    });

    t.test('a flood of wrong keys is answered so often a second and no more, and a good key meanwhile', async (t) => {
        const key = await keyWith();
        let refused = 0;
        const startedAt = performance.now();
        for (let opened = 0; opened < 30; opened += 1) {
            const socket = connect({ port, rejectUnauthorized: false });
            t.teardown(() => socket.destroy());
            const ask = (requests: number): void =>
                void socket.write(`GET /rest_api/v2/base HTTP/1.1\r\nHost: a\r\ntoken: ${newApiKey()}\r\n\r\n`.repeat(requests));
            socket.on('error', () => {});
            socket.on('secureConnect', () => ask(16));
            socket.on('data', (bytes) => {
                const answers = bytes.toString('latin1').split('HTTP/1.1 403').length - 1;
                refused += answers;
                ask(answers);
            });
        }
        const answered: Answer[] = [];
        while (refused < PER_SECOND + 100) {
            answered.push(await asked('/rest_api/v2/base', key));
        }
        t.strictSame(
            answered.filter(({ status }) => status !== 200),
            [],
            'all that the good key asked for meanwhile',
        );

        const most = ((performance.now() - startedAt) / 1000) * PER_SECOND + 100;
        t.ok(refused <= most, `${refused} refused, of ${Math.round(most)}`);
    });
});
