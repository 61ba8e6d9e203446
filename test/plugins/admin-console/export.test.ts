import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { each } from '../../../adapters/contract/inventory/fixture.ts';
import { type MemoryInventory, memoryInventory } from '../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { Host } from '../../../lib/inventory/host.ts';
import { plugin } from '../../../plugins/admin-console/index.ts';

type List = MemoryInventory['hosts']['list'];

/** A server over an inventory whose hosts are listed otherwise, and what it tells of answers that broke off. */
async function served(t: Test, listing: (list: List) => List = (list) => list) {
    const inventory = memoryInventory();
    await inventory.importHosts('office', each([{ address: '192.0.2.1', name: '<printer>' }]));
    const server = hapiServer({ port: 0, host: '127.0.0.1' });
    const hosts = { ...inventory.hosts, list: listing(inventory.hosts.list) };
    await server.register({ plugin, options: { system: { inventory: { ...inventory, hosts } }, auth: false, authorize: () => true } });
    const cut: unknown[] = [];
    server.events.on({ name: 'scanwire', channels: ['stream.cut'] }, (event) => cut.push(event));
    await server.start();
    t.teardown(() => server.stop());
    return { server, cut };
}

const PATH = '/admin-console/export?workspace=office&format=';

async function begun({ info }: Server, method = 'GET'): Promise<IncomingMessage> {
    const outgoing = request({ port: info.port, path: `${PATH}jsonl`, method, agent: false }).end();
    outgoing.on('error', () => {});
    const [incoming] = await once(outgoing, 'response');
    return incoming;
}

t.test('answers with a file of the type of its format, to be saved', async (t) => {
    const { server } = await served(t);
    for (const [format, type, first] of [
        ['jsonl', 'application/x-ndjson', '{"id":1,'],
        ['csv', 'text/csv; charset=utf-8; header=present', 'id,workspace_id,'],
        ['nmap-xml', 'application/xml; charset=utf-8', '<?xml '],
    ] as const) {
        const { statusCode, headers, payload } = await server.inject(PATH + format);
        t.equal(statusCode, 200);
        t.match(headers, { 'content-type': type, 'content-disposition': 'attachment', 'x-content-type-options': 'nosniff' });
        t.ok(payload.startsWith(first), payload.slice(0, 100));
    }
});

t.test('refuses over HTTP/1.0, where one that was cut would look complete, all files but XML, which then does not parse', async (t) => {
    const { server } = await served(t);
    for (const [format, status] of [
        ['jsonl', 505],
        ['csv', 505],
        ['nmap-xml', 200],
    ] as const) {
        const socket = net.connect(Number(server.info.port), '127.0.0.1');
        socket.write(`GET ${PATH}${format} HTTP/1.0\r\n\r\n`);
        const answered = await text(socket);
        t.match(answered, `HTTP/1.1 ${status}`, format);
        t.equal(answered.includes('proxy_http_version 1.1;'), status === 505, format);
        t.equal(answered.includes('192.0.2.1'), status === 200, format);
    }
});

t.test('names what is wrong: an unknown format, an unknown workspace, a store that is away', async (t) => {
    const { server, cut } = await served(t, () => () => {
        throw new ScanwireError('UNAVAILABLE', 'The database is away');
    });
    for (const [query, status, error] of [
        [
            'workspace=office&format=xlsx',
            400,
            { code: 'INVALID_INPUT', field: 'format', message: 'format must be one of [jsonl, csv, nmap-xml]' },
        ],
        ['format=csv', 400, { code: 'INVALID_INPUT', field: 'workspace', message: 'workspace is required' }],
        ['workspace=attic&format=csv', 404, { code: 'NOT_FOUND', field: 'workspace', message: 'Unknown workspace "attic"' }],
        ['workspace=office&format=jsonl', 503, { code: 'UNAVAILABLE', message: 'The database is away' }],
    ] as const) {
        const { statusCode, payload } = await server.inject(`/admin-console/export?${query}`);
        t.equal(statusCode, status, payload);
        t.same(JSON.parse(payload), { error });
    }
    t.same(cut, []);
});

/** Hosts without end, more than a connection holds; what became of the reading. */
function endless(): { readonly list: List; readonly ended: Promise<AbortSignal | undefined> } {
    let end = (_signal?: AbortSignal): void => {};
    const ended = new Promise<AbortSignal | undefined>((resolve) => {
        end = resolve;
    });
    const host = { id: 1, workspace_id: 2, address: '192.0.2.1', comments: 'x'.repeat(60_000) } as unknown as Host;
    return {
        ended,
        async *list(_path, { signal } = {}) {
            try {
                for (;;) {
                    yield [host];
                }
            } finally {
                end(signal);
            }
        },
    };
}

t.test('ends the reading when the client leaves, and when it asks for the head only', async (t) => {
    for (const method of ['GET', 'HEAD']) {
        const { list, ended } = endless();
        const { server, cut } = await served(t, () => list);
        const incoming = await begun(server, method);
        t.equal(incoming.statusCode, 200);
        if (method === 'GET') {
            await once(incoming, 'data');
            incoming.destroy();
        }
        t.equal((await ended)?.aborted, true);
        t.same(cut, [], 'it was the client who left');
    }
});

t.test('breaks the connection when the store fails half-way, so that no part is taken for the whole', async (t) => {
    const { list } = endless();
    const { server, cut } = await served(
        t,
        () =>
            async function* (path) {
                let batches = 0;
                for await (const batch of list(path)) {
                    yield batch;
                    batches += 1;
                    if (batches === 5) {
                        throw new ScanwireError('UNAVAILABLE', 'The database is away');
                    }
                }
            },
    );
    const incoming = await begun(server);
    await t.rejects(incoming.toArray(), { code: 'ECONNRESET' });
    t.match(cut, [{ type: 'stream.cut', plugin: 'admin-console', path: '/admin-console/export' }]);
});
