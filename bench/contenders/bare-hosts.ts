import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Boom from '@hapi/boom';
import { server as hapiServer } from '@hapi/hapi';
import { network } from '../network.ts';
import { addKeyStrategy, key, ownerOf } from './bare-key.ts';

/**
 * The peers: one host out of a map, with a check of the key and nothing else, by `http`, node:http as it comes, or by `hapi`. Prints the
 * address of what would be the index, and the key.
 */
const [way = '', count = '0'] = process.argv.slice(2);
const PATH = '/rest_api/v2/workspaces/1/hosts';
const hosts = new Map<number, object>();
for await (const { name, state, ...host } of network(Number(count))) {
    const id = hosts.size + 1;
    const times = { created_at: '2026-11-21T09:30:00+00:00', updated_at: '2026-11-21T09:30:00+00:00' };
    const counts = { note_count: 0, vuln_count: 0, service_count: 0, host_detail_count: 0, exploit_attempt_count: 0, cred_count: 0 };
    const nulls = {
        comm: null,
        os_lang: null,
        arch: null,
        scope: null,
        virtual_host: null,
        nexpose_data_asset_id: null,
        detected_arch: null,
    };
    hosts.set(id, { id, workspace_id: 1, ...times, ...host, name, state, ...nulls, ...counts, history_count: 0 });
}

const starts: Readonly<Record<string, () => Promise<string>>> = {
    async http() {
        const route = /^\/rest_api\/v2\/workspaces\/(\d+)\/hosts\/(\d+)$/;
        const server = createServer((request, response) => {
            if (ownerOf(request.headers.token) === undefined) {
                response.writeHead(403).end();
                return;
            }

            const host = hosts.get(Number(route.exec(request.url ?? '')?.[2]));
            if (host === undefined) {
                response.writeHead(404).end();
                return;
            }

            const body = JSON.stringify(host);
            response
                .writeHead(200, { 'content-type': 'application/json; charset=utf-8', 'content-length': Buffer.byteLength(body) })
                .end(body);
        });
        await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
        return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    },

    async hapi() {
        const server = hapiServer({ host: '127.0.0.1', port: 0 });
        addKeyStrategy(server);
        server.route({
            method: 'GET',
            path: '/rest_api/v2/workspaces/{workspace}/hosts/{host}',
            options: { auth: 'key' },
            handler: (request) => hosts.get(Number(request.params.host)) ?? Boom.notFound(),
        });
        await server.start();
        return server.info.uri;
    },
};

const origin = await (starts[way] as () => Promise<string>)();
process.stdout.write(`${origin}${PATH} ${key}\n`);
