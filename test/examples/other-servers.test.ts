import { type ChildProcess, spawn } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import type { Publish } from '../../lib/webhooks/events/publisher.ts';
import type { Webhooks } from '../../lib/webhooks/webhooks.ts';
import { testDatabase } from '../support/test-database.ts';

interface Started {
    readonly url: string;
    readonly scanwire: {
        readonly publish: Publish;
        readonly exporters: Webhooks['exporters'];
        createKey(name: string): Promise<{ key: string }>;
        stop(): Promise<void>;
    };
    stop(): Promise<void>;
}

interface Example {
    startServer(options: object): Promise<Started>;
}

interface Received {
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
}

/** A receiver whose answers wait until they are let go. */
async function receiver(t: Test) {
    const received: Received[] = [];
    let letGo: () => void = () => {};
    let held: Promise<void> | null = null;
    const server = createServer((request, response) => {
        void text(request).then(async (body) => {
            received.push({ headers: request.headers, body });
            await held;
            response.end();
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.after(() => server.close());
    return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`,
        received,
        hold() {
            held = new Promise((resolve) => {
                letGo = resolve;
            });
        },
        letGo: () => letGo(),
    };
}

async function database(t: Test) {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    t.after(async () => {
        await pool.end();
        await drop();
    });
    return { url, pool };
}

const egress = { allow: ['127.0.0.0/8'] };
const ofInvestigations = ({ received }: { received: readonly Received[] }) =>
    received.filter(({ headers }) => headers['x-acme-event'] === 'idr_investigation_created');

// Twelve databases and servers take their time on a busy machine.
t.setTimeout(240_000);

for (const name of ['express', 'fastify', 'nest', 'http']) {
    const { startServer } = (await import(pathToFileURL(resolve(`examples/other-servers/${name}.js`)).href)) as Example;

    t.test(`${name}: serves its own routes, the REST API below its path, and publishes in its transactions`, async (t) => {
        const { pool } = await database(t);
        const { url, scanwire, stop } = await startServer({ pool, port: 0, sealingKey: randomBytes(32), egress });
        t.after(stop);
        const post = (body: string) => fetch(`${url}/findings`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

        const { key: token } = await scanwire.createKey('first key');
        const get = (path: string, init: RequestInit = {}) => fetch(`${url}/scan/rest_api/v2${path}`, { headers: { token }, ...init });
        const workspaces = await get('/workspaces');
        t.match([workspaces.status, await workspaces.json()], [200, [{ name: 'default' }]]);
        t.equal((await get('/workspaces', { headers: {} })).status, 403);
        t.equal((await get('/nothing?of=it')).status, 404);
        t.equal((await fetch(`${url}/nothing`)).status, 404);
        t.equal(
            (await get('/workspaces', { method: 'POST', body: 'no JSON {', headers: { token, 'content-type': 'application/json' } }))
                .status,
            404,
        );
        t.equal(await chunked(`${url}/scan/rest_api/v2/workspaces`, token), 404, 'a body without a length is nobody else’s either');

        const ops = await receiver(t);
        const { exporter, secret } = await scanwire.exporters.create({ name: 'ops', url: ops.url });
        t.equal((await scanwire.exporters.start(exporter.id)).test.attempt?.outcome?.code, 'delivered');
        const made = await post('{"title":"Weak cipher"}');
        t.equal(made.status, 201);
        const { id } = (await made.json()) as { id: string };
        await until(() => ofInvestigations(ops).length === 1);
        const [message] = ofInvestigations(ops);
        t.match(JSON.parse(message?.body ?? ''), { title: 'Weak cipher', investigationId: id });
        t.equal(
            message?.headers['x-acme-signature'],
            createHmac('sha256', secret)
                .update(message?.body ?? '')
                .digest('base64'),
        );

        t.equal((await post('{"title":""}')).status >= 400, true, 'a body that is refused takes its row along');
        t.same((await pool.query('select title from finding')).rows, [{ title: 'Weak cipher' }]);
    });

    t.test(`${name}: waits for what is being sent when it stops, and starts again where it was`, async (t) => {
        const { pool } = await database(t);
        const options = { pool, port: 0, sealingKey: randomBytes(32), egress };
        const first = await startServer(options);
        const ops = await receiver(t);
        const { exporter } = await first.scanwire.exporters.create({ name: 'ops', url: ops.url });
        await first.scanwire.exporters.start(exporter.id);
        ops.hold();
        await fetch(`${first.url}/findings`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"title":"Late"}',
        });
        await until(() => ofInvestigations(ops).length === 1);

        const stopped = first.stop();
        await until(() =>
            fetch(`${first.url}/nothing`).then(
                () => false,
                () => true,
            ),
        );
        ops.letGo();
        await stopped;
        const { rows } = await pool.query('select distinct state from scanwire.deliveries');
        t.same(rows, [{ state: 'delivered' }]);

        const second = await startServer(options);
        await fetch(`${second.url}/findings`, {
            method: 'POST',
            headers: { 'content-type': 'application/json' },
            body: '{"title":"Next"}',
        });
        await until(() => ofInvestigations(ops).length === 2);
        await second.stop();
    });

    t.test(`${name}: neither server stops the other`, async (t) => {
        const { pool } = await database(t);
        const { url, scanwire, stop } = await startServer({ pool, port: 0, sealingKey: randomBytes(32), egress });
        t.after(stop);
        const { key: token } = await scanwire.createKey('first key');
        const own = async () => (await fetch(`${url}/nothing`)).status;
        const rest = async () => (await fetch(`${url}/scan/rest_api/v2/workspaces`, { headers: { token } })).status;
        const post = (body: string) => fetch(`${url}/findings`, { method: 'POST', headers: { 'content-type': 'application/json' }, body });

        for (const path of ['/findings', '/scan/rest_api/v2/workspaces']) {
            await brokenOff(`${url}${path}`, token);
            t.same([await own(), await rest()], [404, 200], `after a client of ${path} that broke off`);
        }
        t.ok((await post('no JSON {')).status >= 400);
        t.same([await own(), await rest()], [404, 200], 'after a body that the own server refuses');

        await scanwire.stop();
        t.same([await own(), (await post('{"title":"Late"}')).status], [404, 201], 'what stands beside it goes on');
        t.same((await pool.query('select title from finding')).rows, [{ title: 'Late' }]);
    });

    t.test(`${name}: is a program that says what to try and ends at SIGTERM`, async (t) => {
        const { url: DATABASE_URL } = await database(t);
        const env = { ...process.env, DATABASE_URL, SEALING_KEY: randomBytes(32).toString('base64'), PORT: '0' };
        const child: ChildProcess = spawn(process.execPath, [`examples/other-servers/${name}.js`], {
            env,
            stdio: ['ignore', 'pipe', 'inherit'],
        });
        t.after(() => child.kill('SIGKILL'));
        const [printed] = await once(child.stdout as NodeJS.ReadableStream, 'data');
        const [, token = '', url = ''] = /^curl -H 'token: (\S+)' (http:\S+)$/m.exec(String(printed)) ?? [];
        t.equal((await fetch(url, { headers: { token, connection: 'close' } })).status, 200);
        child.kill('SIGTERM');
        t.strictSame(await once(child, 'exit'), [0, null]);
    });
}

/** A request whose client leaves within its body. */
async function brokenOff(url: string, token: string): Promise<void> {
    const request = httpRequest(url, { method: 'POST', headers: { token, 'content-type': 'application/json', 'content-length': 100 } });
    request.on('error', () => {});
    request.write('{');
    await once(request, 'socket');
    await new Promise<void>((resolve) => {
        request.socket?.once('connect', () => request.socket?.write('', () => resolve()));
    });
    request.destroy();
}

/** Status of the answer to a body whose end comes with the answer only. */
async function chunked(url: string, token: string): Promise<number | undefined> {
    const request = httpRequest(url, { method: 'POST', headers: { token, 'content-type': 'text/plain' } });
    request.on('error', () => {});
    request.write('never ends');
    const [response] = (await once(request, 'response')) as [IncomingMessage];
    request.destroy();
    return response.statusCode;
}
