import { readFileSync } from 'node:fs';
import { request } from 'node:https';
import { text } from 'node:stream/consumers';
import t from 'tap';
import { isBatch } from '../../cli/http-servers.ts';
import { ended } from '../support/scanwire.ts';
import { get, json, type Served, serve, usedDataOf } from '../support/served.ts';

const line = `${JSON.stringify({ data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 8443 })}\n`;

async function post({ url, certificate }: Served, token: string): Promise<{ status: number | undefined; body: string }> {
    return new Promise((resolve, reject) => {
        const headers = { token, 'content-type': 'application/x-ndjson' };
        const options = { method: 'POST', ca: readFileSync(certificate), headers, agent: false };
        const outgoing = request(`${url}/https-record-schema/records`, options, (incoming) => {
            text(incoming).then((body) => resolve({ status: incoming.statusCode, body }), reject);
        });
        outgoing.on('error', reject).end(line);
    });
}

t.test('imports records behind a key, and shows them as hosts where it is told to', async (t) => {
    const data = await usedDataOf(t);
    const scopes = ['inventory:read', 'records:read', 'records:write'].flatMap((scope) => ['--scope', scope]);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'records', ...scopes);
    const { server, served } = await serve(t, data, '--enrich', 'web');

    t.equal((await post(served, 'no key')).status, 403);
    t.match(await post(served, key), { status: 200, body: /"complete":true,"ok":true,.*"new":1/ });
    t.match(JSON.parse((await get(served, '/https-record-schema/records?ip=192.0.2.7', key)).body), { records: [{ id: 1 }], next: null });
    const workspaces = JSON.parse((await get(served, '/rest_api/v2/workspaces', key)).body) as { id: number; name: string }[];
    const { id } = workspaces.find(({ name }) => name === 'web') ?? {};
    t.match(JSON.parse((await get(served, `/rest_api/v2/workspaces/${id}/hosts`, key)).body), [{ address: '192.0.2.7', service_count: 1 }]);
    t.equal(await ended(server, 'SIGINT'), 0);
});

t.test('lets requests that bring records take as long as they send, and no others', (t) => {
    for (const [method, url, isLong] of [
        ['POST', '/https-record-schema/records', true],
        ['POST', '/https-record-schema/records?results=all', true],
        ['POST', '/https-record-schema/check', true],
        ['GET', '/https-record-schema/records', false],
        ['POST', '/https-record-schema/records/1', false],
        ['POST', '/https-record-schema/checks', false],
        ['POST', '/webhook-exporter/events?/https-record-schema/records', false],
        ['POST', undefined, false],
    ] as const) {
        t.equal(isBatch({ method, url }), isLong, `${method} ${url}`);
    }
    t.end();
});
