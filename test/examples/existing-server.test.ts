import { execFile } from 'node:child_process';
import { createHmac, randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { resolve } from 'node:path';
import { text } from 'node:stream/consumers';
import { pathToFileURL } from 'node:url';
import { promisify } from 'node:util';
import type { Server } from '@hapi/hapi';
import pg from 'pg';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { testDatabase } from '../support/test-database.ts';

interface Example {
    buildServer(options: object): Promise<Server>;
}

const { buildServer } = (await import(pathToFileURL(resolve('examples/existing-server/server.js')).href)) as Example;
const run = promisify(execFile);
const session = { 'x-session': 'ada' };

async function started(t: Test): Promise<{ server: Server; pool: pg.Pool }> {
    const database = await testDatabase();
    const pool = new pg.Pool({ connectionString: database.url });
    const server = await buildServer({
        pool,
        port: 0,
        sealingKey: randomBytes(32),
        sessions: new Map([['ada', 'Ada']]),
        egress: { allow: ['127.0.0.0/8'] },
    });
    await server.start();
    t.teardown(async () => {
        await server.stop();
        if (!pool.ended) {
            await pool.end();
        }
        await database.drop();
    });
    await pool.query(`insert into site (name) values ('Oslo'), ('Lima')`);
    await pool.query(
        `insert into machine (site_id, ip, label, os) select 1, '10.0.0.0'::inet + n, 'machine-' || n, 'Linux' from generate_series(1, 1200) n`,
    );
    await pool.query(`insert into machine (site_id, ip, label) values (2, '2001:db8::7', 'lima-1')`);
    return { server, pool };
}

interface Received {
    readonly headers: IncomingMessage['headers'];
    readonly body: string;
}

async function receiver(t: Test): Promise<{ url: string; received: Received[] }> {
    const received: Received[] = [];
    const server = createServer((request, response) => {
        void text(request).then((body) => {
            received.push({ headers: request.headers, body });
            response.end();
        });
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`, received };
}

t.test('keeps its own routes and sessions, and serves its tables behind an API key', async (t) => {
    const { server } = await started(t);
    t.equal((await server.inject('/sites')).statusCode, 401);
    t.same((await server.inject({ url: '/sites', headers: session })).result, [
        { id: 1, name: 'Oslo' },
        { id: 2, name: 'Lima' },
    ]);

    const made = await server.inject({ method: 'POST', url: '/api-keys', headers: session });
    const { key: token } = made.result as unknown as { key: string };
    const get = async (path: string) => server.inject({ url: `/rest_api/v2${path}`, headers: { token } });
    t.equal((await server.inject({ url: '/rest_api/v2/workspaces', headers: session })).statusCode, 403);
    t.match(JSON.parse((await get('/workspaces')).payload), [{ id: 1, name: 'Oslo', limit_to_network: false }, { id: 2 }]);

    const hosts = JSON.parse((await get('/workspaces/1/hosts')).payload);
    t.equal(hosts.length, 1200);
    t.match(hosts[1199], { id: 1200, workspace_id: 1, address: '10.0.4.176', name: 'machine-1200', os_name: 'Linux', state: 'alive' });
    t.match(JSON.parse((await get('/workspaces/2/hosts/1201')).payload), { address: '2001:db8::7', os_name: '' });
    t.equal((await get('/workspaces/2/hosts/1')).statusCode, 404);
    t.equal((await get('/workspaces/3/hosts')).statusCode, 404);
});

t.test('adds four plugins and a store of its own in 40 lines', async (t) => {
    const { server } = await started(t);
    t.match(Object.keys(server.registrations), ['token-auth', 'rest-api-v2', 'https-record-schema', 'webhook-exporter']);
    const linesOf = (file: string): readonly string[] =>
        readFileSync(`examples/existing-server/${file}`, 'utf8')
            .split('\n')
            .filter((line) => line.trim() !== '' && !/^\s*(?:\/\*\*|\/\/)/.test(line));
    const added = linesOf('add-scanwire.js');
    // The routes after it are the server's own.
    const lines = [
        ...added.slice(
            0,
            added.findIndex((line) => line.includes('server.route(')),
        ),
        '}',
        ...linesOf('site-inventory.js'),
    ];
    t.ok(lines.length <= 40, `${lines.length} lines`);
});

t.test('tells its users what they did wrong, and what is away', async (t) => {
    const { server, pool } = await started(t);
    const send = (method: string, url: string, payload?: object) =>
        server.inject({ method, url, headers: session, ...(payload && { payload }) });
    const refused = await send('POST', '/receivers', { name: 'ops', url: 'ftp://192.0.2.7/' });
    t.equal(refused.statusCode, 400);
    t.match(refused.result, { code: 'INVALID_INPUT', field: 'url' });

    const { id } = (await send('POST', '/api-keys')).result as unknown as { id: string };
    t.equal((await send('DELETE', `/api-keys/${id}`)).statusCode, 204);
    t.equal((await send('DELETE', `/api-keys/${id}`)).statusCode, 409);
    t.equal((await send('DELETE', '/api-keys/00000000-0000-4000-8000-000000000000')).statusCode, 404);

    await pool.end();
    const away = await send('POST', '/api-keys');
    t.equal(away.statusCode, 503);
    t.notMatch(away.payload, /pool|database/i);
});

t.test('passes the laws of an inventory with the test of its own', async (t) => {
    const database = await testDatabase();
    t.teardown(() => database.drop());
    const env = { ...process.env, DATABASE_URL: database.url };
    const { stdout } = await run(process.execPath, ['examples/existing-server/site-inventory.test.js'], { env }).catch(
        (error: { stdout: string }) => error,
    );
    t.match(stdout, /^# fail 0$/m);
    t.match(stdout, /^# pass [1-9]/m);
});

t.test('delivers a finding to a receiver, signed', async (t) => {
    const { server, pool } = await started(t);
    const { url, received } = await receiver(t);
    const made = await server.inject({ method: 'POST', url: '/receivers', headers: session, payload: { name: 'ops', url } });
    const { secret, test } = made.result as unknown as { secret: string; test: string };
    t.equal(test, 'delivered');

    const path = (id: number) => ({ method: 'POST', url: `/machines/${id}/findings`, headers: session, payload: { title: 'Weak cipher' } });
    t.equal((await server.inject(path(9999))).statusCode, 404);
    const { id } = (await server.inject(path(7))).result as unknown as { id: string };
    await until(() => received.some(({ headers }) => headers['x-acme-event'] === 'idr_investigation_created'));

    const [, message] = received;
    t.match(JSON.parse(message?.body ?? ''), {
        title: 'Weak cipher',
        investigationId: id,
        actors: { assets: [{ hostname: 'machine-7' }] },
    });
    t.equal(
        message?.headers['x-acme-signature'],
        createHmac('sha256', secret)
            .update(message?.body ?? '')
            .digest('base64'),
    );
    t.same((await pool.query('select title from finding')).rows, [{ title: 'Weak cipher' }]);
});
