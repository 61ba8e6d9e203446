import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { freePort } from '../support/free-port.ts';
import { json, scanwire, serve } from './support/processes.ts';
import { temporaryFolder } from './support/temporary-folder.ts';

const SCAN = new URL('../../../fixtures/scans/services.xml', import.meta.url).pathname;

interface Answer {
    readonly status: number | undefined;
    readonly type: string | undefined;
    readonly body: string;
}

function ask(url: string, ca: Buffer, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> {
    return new Promise((resolve, reject) => {
        const outgoing = request(url, { headers, method, ca, agent: false }, (response) => {
            text(response).then((body) => resolve({ status: response.statusCode, type: response.headers['content-type'], body }), reject);
        });
        outgoing.on('error', reject);
        outgoing.end();
    });
}

t.test('serves an imported scan behind a key and tells nobody else anything', async (t) => {
    const folder = temporaryFolder(t);
    const data = `${folder}/data`;
    const port = await freePort();
    const { origin, stop } = await serve(t, data, { args: ['--metasploit-port', `${port}`] });
    const ca = readFileSync(`${data}/tls/cert.pem`);

    const get = (path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<Answer> =>
        ask(`${origin}/rest_api/v2${path}`, ca, headers, method);

    const imported = await json<{ hosts: { new: number } }>(['import', SCAN, '--data', data]);
    t.ok(imported.hosts.new > 0);
    const { key: token, id } = await json<{ id: string; name: string; key: string }>(['keys', 'create', 'acceptance', '--data', data]);

    t.match(await get('/base', { token }), { status: 200, type: 'text/html; charset=utf-8' });
    const workspaces = JSON.parse((await get('/workspaces', { Token: token })).body);
    t.strictSame(Object.keys(workspaces[0]), [
        'id',
        'name',
        'boundary',
        'description',
        'owner_id',
        'limit_to_network',
        'created_at',
        'updated_at',
    ]);
    t.equal(workspaces[0].name, 'default');
    t.match(workspaces[0].created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00$/);

    const path = `/workspaces/${workspaces[0].id}/hosts`;
    const index = await get(path, { token });
    t.equal(index.type, 'application/json; charset=utf-8');
    const hosts = JSON.parse(index.body);
    t.equal(hosts.length, imported.hosts.new);
    t.strictSame(JSON.parse((await get(`${path}/${hosts[0].id}`, { token })).body), hosts[0]);
    t.equal((await get(`${path}/`, { token })).body, index.body, 'a trailing slash changes nothing');
    t.equal((await get(`${path}?page=2&unknown=1`, { token })).body, index.body, 'unknown query keys change nothing');
    t.match(await get(path, { token }, 'HEAD'), { status: 200, body: '' });

    for (const at of [origin, `https://127.0.0.1:${port}`]) {
        const console = { url: `${at}/api/v1/hosts?workspace=default`, headers: { authorization: `Bearer ${token}` } };
        const answer = await ask(console.url, ca, console.headers);
        t.equal(JSON.parse(answer.body).data.length, imported.hosts.new, 'a client of the other data service sees the same');
        t.equal((await ask(console.url, ca)).status, 401);
    }

    const docs = await ask(`${origin}/api-docs`, ca);
    t.match(docs, { status: 200, type: 'text/html; charset=utf-8' }, 'the page about the API asks for a key itself');
    t.equal((await get('/openapi.json')).status, 403);
    t.match(JSON.parse((await get('/openapi.json', { token })).body), { openapi: '3.1.0', webhooks: {}, paths: {} });

    const denied = await get('/workspaces');
    t.equal(denied.status, 403);
    const wrong = [
        await get('/workspaces', { token: `${token.slice(0, -1)}${token.endsWith('x') ? 'y' : 'x'}` }),
        await get('/workspaces', { token: '' }),
        await get('/workspaces', { authorization: `Bearer ${token}` }),
        await get('/workspaces/999/hosts'),
        await get('/nothing/here'),
        await get('/workspaces', {}, 'POST'),
        await get('/base'),
    ];
    t.ok(wrong.every((answer) => answer.status === 403 && answer.body === denied.body));

    await json(['import', SCAN, '--workspace', 'other', '--data', data]);
    const other = JSON.parse((await get('/workspaces', { token })).body).find(({ name }: { name: string }) => name === 'other');
    const [foreign] = JSON.parse((await get(`/workspaces/${other.id}/hosts`, { token })).body);
    const missing = ['/workspaces/999', '/workspaces/999/hosts', `${path}/${foreign.id}`, `${path}/999999`, '/nothing'];
    const malformed = ['1e3', '-1', '99999999999', '+1', '01', '0x1', '1.0', '%31%00', '２'].map(
        (bad) => `/workspaces/${encodeURIComponent(bad)}/hosts`,
    );
    for (const unknown of [...missing, ...malformed]) {
        t.equal((await get(unknown, { token })).status, 404, unknown);
    }

    await json(['keys', 'revoke', id, '--data', data]);
    t.equal((await get('/workspaces', { token })).body, denied.body, 'a revoked key is a wrong key');

    const expired = await json<{ key: string }>(['keys', 'create', 'second', '--data', data]);
    await scanwire(['license', 'install', '/dev/null', '--data', data]);
    t.equal((await get('/workspaces', { token: expired.key })).status, 200, 'a file that is no licence changes nothing');
    t.equal(await stop('SIGTERM'), 0);
});
