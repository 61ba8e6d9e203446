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
        created: () => json<{ id: string; key: string }>(data, 'keys', 'create', 'revoked'),
        revoked: (id: string) => json(data, 'keys', 'revoke', id),
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
    const { port, keyWith, asked, created, revoked } = await attacked(t);
    const hostOf = async (workspace: string): Promise<unknown> =>
        JSON.parse((await asked(`/rest_api/v2/workspaces/${workspace}/hosts?limit=1`, await keyWith())).text)[0].id;

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
        const parts = ['services', 'services/1', 'services/1/vulns/1', 'notes/1', 'sessions', 'sessions/1'];
        const lists = ['', '/', '/hosts', '/services', '/notes', '/vulns?limit=1', `/hosts?workspace_id=${idOf('one')}`];
        const forms = ['', '0', '+', '%31%00', '-'].map((sign) => `${sign}${idOf('two')}`);
        for (const id of [...forms, `0${idOf('one')}`, `${idOf('one')},${idOf('two')}`, `${idOf('two')}.0`, `${idOf('two')}e0`]) {
            const below = id === idOf('two') ? [...lists, '/hosts/1', ...parts.map((part) => `/hosts/1/${part}`)] : lists;
            for (const path of below) {
                const other = await asked(`/rest_api/v2/workspaces/${id}${path}`, key);
                t.equal(other.status, 404, `${id}${path}`);
                t.strictSame(other, await asked(`/rest_api/v2/workspaces/999999${path}`, key), `${id}${path}`);
            }
        }
        for (const path of [`/rest_api/v2/workspaces/${idOf('one')}/hosts/${await hostOf(idOf('two'))}`, '/https-record-schema/records']) {
            t.ok([403, 404].includes(Number((await asked(path, key)).status)), path);
        }
        const listed = JSON.parse((await asked('/api/v1/workspaces', key)).text).data as { readonly name: string }[];
        t.same(
            listed.map(({ name }) => name),
            ['one'],
            'clients of the framework see no other either',
        );
        const unknown = (await asked('/api/v1/hosts?workspace=three', key)).text;
        t.equal((await asked('/api/v1/hosts?workspace=two', key)).text, unknown.replace('three', 'two'));
    });

    t.test('a key that was revoked is answered as one that never was, and no other writing of a key as the key', async (t) => {
        const unknown = await asked('/rest_api/v2/base', newApiKey());
        const { id, key } = await created();
        t.equal((await asked('/rest_api/v2/base', key)).status, 200);
        await revoked(id);
        t.strictSame(await asked('/rest_api/v2/base', key), unknown);
        const good = await keyWith();
        for (const token of ['', 'scw_', good.toLowerCase(), good.slice(0, -1), `${good}0`, `${good}${good}`, `${good}, ${good}`, 'null']) {
            t.equal((await asked('/rest_api/v2/base', token)).status, 403, token.slice(0, 8));
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
