import { createHash } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { type ClientRequest, request } from 'node:http';
import { gzipSync } from 'node:zlib';
import { server as hapiServer, type Server } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import type { ImportOptions, ImportSummary } from '../../../lib/inventory/store.ts';
import { plugin } from '../../../plugins/admin-console/index.ts';
import { openToOwnerOnly } from '../../../plugins/admin-console/own-files.ts';

interface Upload {
    readonly server: Server;
    /** Its first bytes are sent, and nothing more yet. */
    readonly outgoing: ClientRequest;
    /** Resolves when the server has found a reason to refuse it. */
    readonly refused: Promise<void>;
}

/** Begins to send a scan that is going to be refused, by the reader or, without a workspace, by the schema. */
async function begin(t: Test, query: string): Promise<Upload> {
    let refuse = (): void => {};
    const refused = new Promise<void>((resolve) => {
        refuse = resolve;
    });
    const inventory = {
        async importHosts(): Promise<never> {
            refuse();
            throw new ScanwireError('INVALID_INPUT', 'Line 1: no');
        },
    };
    const server = hapiServer({ port: 0, host: '127.0.0.1' });
    await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
    server.ext('onPreAuth', (_, h) => {
        if (query === '') {
            refuse();
        }

        return h.continue;
    });
    await server.start();
    t.teardown(() => server.stop());

    const headers = { 'content-type': 'application/octet-stream' };
    const path = `/admin-console/import${query}`;
    const outgoing = request({ port: server.info.port, method: 'POST', path, headers, agent: false });
    outgoing.write('not a scan\n');
    return { server, outgoing, refused };
}

for (const [end, last] of [
    ['its answer', { result: { done: true } }],
    ['its error', { error: { code: 'CONFLICT', message: 'no' } }],
] as const) {
    t.test(`tells the progress in lines to whoever accepts them, and then ${end}`, async (t) => {
        const inventory = {
            async importHosts(_name: string, hosts: AsyncIterable<unknown>, { onProgress }: ImportOptions = {}) {
                for await (const _host of hosts);
                onProgress?.({ phase: 'storing', done: 1, total: 2 });
                if ('error' in last) {
                    throw new ScanwireError('CONFLICT', 'no');
                }

                return last.result as unknown as ImportSummary;
            },
        };
        const server = hapiServer();
        await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
        const { payload, headers } = await server.inject({
            method: 'POST',
            url: '/admin-console/import?workspace=default',
            headers: { accept: 'application/x-ndjson', 'content-type': 'application/x-ndjson' },
            payload: '{"address":"192.0.2.7"}\n',
        });
        t.match(headers['content-type'], /^application\/x-ndjson/);
        t.same(
            payload
                .trim()
                .split('\n')
                .map((line) => JSON.parse(line)),
            [{ progress: { phase: 'storing', done: 1, total: 2 } }, last],
        );
    });
}

for (const [reason, query, message] of [
    ['its reader refuses it', '?workspace=default', 'Line 1: no'],
    ['a parameter is missing', '', 'workspace is required'],
] as const) {
    t.test(`refuses a stream only after its end, so that the sender gets to read why: ${reason}`, async (t) => {
        const { server, outgoing, refused } = await begin(t, query);
        let answered = false;
        outgoing.once('response', () => {
            answered = true;
        });
        const response = once(outgoing, 'response');
        await refused;
        // What the server had to say by now would come before its answer to a later request.
        t.equal((await fetch(`${server.info.uri}/other`)).status, 404);
        t.equal(answered, false);

        outgoing.end();
        const [incoming] = await response;
        t.equal(incoming.statusCode, 400);
        t.match(JSON.parse(Buffer.concat(await incoming.toArray()).toString()), { error: { code: 'INVALID_INPUT', message } });
    });
}

t.test('takes no harm when the sender of a refused stream goes', async (t) => {
    const { server, outgoing, refused } = await begin(t, '?workspace=default');
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: ['app', 'error'] }, (_, event) => logged.push(event));
    const ended = server.events.once('response');
    outgoing.on('error', () => {});
    await refused;
    outgoing.destroy();
    await ended;
    t.same(logged, []);
});

t.test('answers whoever accepts lines as ever when there was no progress to tell', async (t) => {
    const inventory = { importHosts: async () => ({ hosts: 0 }) as unknown as ImportSummary };
    const server = hapiServer();
    await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
    const { payload, headers } = await server.inject({
        method: 'POST',
        url: '/admin-console/import?workspace=default',
        headers: { accept: 'application/x-ndjson', 'content-type': 'application/x-ndjson' },
        payload: '{"address":"192.0.2.7"}\n',
    });
    t.match(headers['content-type'], /^application\/json/);
    t.same(JSON.parse(payload), { hosts: 0 });
});

for (const [option, ability] of [
    ['replace', 'replaces'],
    ['dryRun', 'dryRuns'],
] as const) {
    t.test(`asks only a store that ${ability} to do so`, async (t) => {
        const asked: unknown[] = [];
        const importHosts = async (_name: string, _hosts: unknown, options: ImportOptions = {}): Promise<ImportSummary> => {
            asked.push(options[option]);
            return {} as ImportSummary;
        };
        for (const [inventory, statusCode] of [
            [{ importHosts }, 400],
            [{ importHosts, [ability]: true }, 200],
        ] as const) {
            const server = hapiServer();
            await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
            const answer = await server.inject({
                method: 'POST',
                url: `/admin-console/import?workspace=default&${option}=true`,
                headers: { 'content-type': 'application/x-ndjson' },
                payload: '{"address":"192.0.2.7"}\n',
            });
            t.equal(answer.statusCode, statusCode);
            t.match(JSON.parse(answer.payload), statusCode === 400 ? { error: { code: 'INVALID_INPUT', field: option } } : {});
        }
        t.same(asked, [true]);
    });
}

t.test('names all bad lines of a scan', async (t) => {
    const server = hapiServer();
    await server.register({ plugin, options: { system: { inventory: memoryInventory() }, auth: false, authorize: () => true } });
    const { payload } = await server.inject({
        method: 'POST',
        url: '/admin-console/import?workspace=default',
        headers: { 'content-type': 'application/x-ndjson' },
        payload: '{}\n{"address":"192.0.2.7"}\n[]\n{"address":"x"}\n',
    });
    t.match(JSON.parse(payload), {
        error: { field: 'address', message: 'Line 1: address is required; 1 more line is bad', problems: [{ line: 1 }, { line: 4 }] },
    });
});

t.test('expands what a client has packed less than a file of whoever runs the server', async (t) => {
    const scan = gzipSync('{"address":"192.0.2.7"}\n'.concat('\n'.repeat(2_000_000)));
    for (const [port, mark, status] of [
        [0, () => {}, 400],
        // A proxy of the host may write into it what anybody sends.
        [`${t.testdir()}/socket`, () => {}, 400],
        [`${t.testdir()}/own`, openToOwnerOnly, 200],
    ] as const) {
        const server = hapiServer({ port });
        mark(server);
        const system = { inventory: memoryInventory() };
        await server.register({ plugin, options: { system, auth: false, authorize: () => true } });
        const headers = { 'content-type': 'application/octet-stream' };
        const answer = await server.inject({ method: 'POST', url: '/admin-console/import?workspace=default', headers, payload: scan });
        t.equal(answer.statusCode, status, answer.payload);
        const refusal = 'The gzip file expands more than 50 times: not read any further; send it unpacked';
        t.match(
            JSON.parse(answer.payload),
            status === 400 ? { error: { code: 'INVALID_INPUT', message: refusal } } : { hosts: { new: 1 } },
        );
    }
});

t.test('reads no further what was received of a client that has left, and calls that no failure', async (t) => {
    let left: Promise<unknown> = Promise.resolve();
    let read = 0;
    const told = new EventEmitter();
    const inventory = {
        async importHosts(_name: string, hosts: AsyncIterable<unknown>): Promise<never> {
            try {
                for await (const _host of hosts) {
                    read += 1;
                    told.emit('begun');
                    await left;
                }
                throw new Error('All was read');
            } catch (error) {
                setImmediate(() => told.emit('failed', error));
                throw error;
            }
        },
    };
    const server = hapiServer({ port: 0, host: '127.0.0.1' });
    await server.register({ plugin, options: { system: { inventory }, auth: false, authorize: () => true } });
    const logged: unknown[] = [];
    server.events.on({ name: 'request', channels: ['app', 'error'] }, (_, event) => logged.push(event));
    await server.start();
    t.teardown(() => server.stop());
    server.ext('onPreHandler', ({ raw }, h) => {
        left = once(raw.res, 'close');
        return h.continue;
    });

    const headers = { 'content-type': 'application/x-ndjson' };
    const outgoing = request({ port: server.info.port, method: 'POST', path: '/admin-console/import?workspace=a', headers, agent: false });
    outgoing.on('error', () => {});
    outgoing.end('{"address":"192.0.2.7"}\n'.repeat(100));
    await once(told, 'begun');
    outgoing.destroy();
    const [failed] = await once(told, 'failed');
    t.equal(read, 1);
    t.match(failed, { name: 'AbortError' });
    t.same(logged, []);
});

/** A server with a workspace in memory, and what imports a scan there with a digest. */
async function importing() {
    const inventory = memoryInventory();
    let isRead = false;
    const importHosts: typeof inventory.importHosts = (name, hosts, options) => {
        async function* reading(): AsyncGenerator<HostInput> {
            isRead = true;
            yield* hosts;
        }
        return inventory.importHosts(name, reading(), options);
    };
    const server = hapiServer();
    const system = { inventory: { ...inventory, importHosts } };
    await server.register({ plugin, options: { system, auth: false, authorize: () => true } });
    const send = async (payload: string, digest: string | undefined, query = '') => {
        isRead = false;
        const { result, statusCode } = await server.inject({
            method: 'POST',
            url: `/admin-console/import?workspace=default${query}`,
            headers: { 'content-type': 'application/octet-stream', ...(digest !== undefined && { 'content-digest': digest }) },
            payload,
        });
        return { statusCode, isRead, ...(result as Partial<ImportSummary> & { readonly error?: object }) };
    };
    const count = async (): Promise<number> => (await inventory.hosts.count?.([1], {})) ?? Number.NaN;
    return { send, count };
}

function digestOf(text: string): string {
    return `sha-256=:${createHash('sha256').update(text).digest('base64')}:`;
}

const SCAN = '{"address":"192.0.2.7"}\n{"address":"192.0.2.8"}\n';
const REFUSED = { statusCode: 400, error: { code: 'INVALID_INPUT', field: 'Content-Digest' } };

t.test('imports nothing of a body that has another digest than its header says', async (t) => {
    const { send, count } = await importing();
    t.match(await send(SCAN.slice(0, -1), digestOf(SCAN)), REFUSED);
    t.match(await send(SCAN.slice(0, 40), digestOf(SCAN)), REFUSED, 'within a line');
    t.match(await send(SCAN, 'sha-256=:YQ==:'), REFUSED);
    t.equal(await count(), 0);

    t.match(await send(SCAN, digestOf(SCAN)), { statusCode: 200, hosts: { new: 2 } });
    t.match(await send(SCAN, 'sha-512=:YQ==:'), { statusCode: 200, isRead: true, hosts: { unchanged: 2 } }, 'others are left alone');
    t.match(await send(SCAN.slice(0, -1), digestOf(SCAN)), { isRead: false, ...REFUSED }, 'nor when it was imported before');
});

t.test('does not read a scan that was imported before', async (t) => {
    const { send } = await importing();
    await send(SCAN, digestOf(SCAN));
    const other = `${SCAN}\n`;
    for (const [scan, query, isRead] of [
        [SCAN, '', false],
        [SCAN, '&dryRun=true', false],
        [SCAN, '&replace=true', true],
        [other, '', true],
        [other, '', false],
        [SCAN, '', false],
    ] as const) {
        t.match(await send(scan, digestOf(scan), query), { statusCode: 200, isRead, hosts: { new: 0, unchanged: 2 } });
    }
    t.match(await send(SCAN, undefined), { isRead: true });
});

t.test('reads a scan each time that warns', async (t) => {
    const { send } = await importing();
    const closed = '<ports><extraports state="closed" count="7"/><extraports state="filtered" count="2"/></ports>';
    const scan = `<nmaprun><host><status state="up"/><address addr="192.0.2.7"/>${closed}</host></nmaprun>`;
    for (const unchanged of [0, 1, 1]) {
        t.match(await send(scan, digestOf(scan)), { statusCode: 200, isRead: true, hosts: { unchanged } });
    }
});
