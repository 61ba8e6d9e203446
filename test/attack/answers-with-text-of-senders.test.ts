import { server as hapiServer, type RouteOptions } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryRecords } from '../../adapters/memory/index.ts';
import type { System } from '../../plugins/admin-console/index.ts';
import { plugin as httpsRecordSchema } from '../../plugins/https-record-schema/index.ts';
import { admin, host, receiver, register, systemOf } from '../plugins/admin-console/host.ts';

/*
 * What answers say of what somebody sent may be shown by a terminal (`curl`) or a page: signs that those act on are escaped, which is the same JSON.
 * Rows that are shown as they are stored stay as they are.
 */

/** Turns the direction round, and what follows a C1 control is a title of the window. */
const HOSTILE = 'a\u202etxt.exe\u2066\u009d0;owned\u2028\u007f';
const RAW = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const RECORD = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };
const BATCH = `${JSON.stringify({ ...RECORD, [HOSTILE]: 1 })}\n`;

async function records(json?: RouteOptions['json']) {
    const server = hapiServer({ debug: false, ...(json && { routes: { json } }) });
    await server.register({ plugin: httpsRecordSchema, options: { records: memoryRecords(), auth: false } });
    return server;
}

/** The answer is safe to print, and has what was sent nonetheless. */
function isSafe(t: Test, payload: string, what: string): void {
    // The test shows nothing of it either.
    t.notOk(RAW.test(payload), what);
    t.ok(payload.includes('\\u202e'), `${what}: escaped, and no less there`);
}

t.test('reports of batches', async (t) => {
    const server = await records();
    for (const [path, accept] of [
        ['check', 'application/json'],
        ['check', 'application/x-ndjson'],
        ['records', 'application/x-ndjson'],
    ] as const) {
        const headers = { 'content-type': 'application/x-ndjson', accept };
        const { payload } = await server.inject({ method: 'POST', url: `/https-record-schema/${path}`, headers, payload: BATCH });
        isSafe(t, payload, `${path} ${accept}`);
        const [line = ''] = payload.split('\n');
        t.match(JSON.stringify(JSON.parse(line)), HOSTILE.slice(0, 9));
    }
});

t.test('a report is an object to who looks at it in the process, and has the form that the server gives to JSON', async (t) => {
    const headers = { 'content-type': 'application/x-ndjson' };
    const sent = { method: 'POST', url: '/https-record-schema/check', headers, payload: BATCH };
    const plain = await (await records()).inject(sent);
    t.match(plain.result, { ok: false, lines: [{ problems: [{ field: HOSTILE }] }] });
    t.equal(plain.headers['content-type'], 'application/json; charset=utf-8');

    const laidOut = await (await records({ space: 4, suffix: '\n', escape: true })).inject(sent);
    t.match(laidOut.payload, /^\{\n {4}"ok": false,\n.*\}\n$/s);
    isSafe(t, laidOut.payload, 'laid out');
    t.strictSame(JSON.parse(laidOut.payload), plain.result);
});

t.test('refusals of a query', async (t) => {
    const server = await records();
    const { statusCode, payload } = await server.inject(`/https-record-schema/records?${new URLSearchParams({ [HOSTILE]: '1' })}`);
    t.equal(statusCode, 400);
    t.notOk(RAW.test(payload));
    t.match(payload, /a\uFFFDtxt\.exe/);
});

t.test('stored records are shown as they are', async (t) => {
    const server = await records();
    const headers = { 'content-type': 'application/x-ndjson' };
    const payload = `${JSON.stringify({ ...RECORD, subject: { CN: HOSTILE } })}\n`;
    await server.inject({ method: 'POST', url: '/https-record-schema/records', headers, payload });
    t.match((await server.inject('/https-record-schema/records')).payload, 'a\u202etxt.exe');
});

t.test('answers of the admin console', async (t) => {
    const server = await host();
    const system = systemOf(server);
    const inventory: System['inventory'] = {
        ...system.inventory,
        async importHosts(name, hosts, options) {
            options?.onProgress?.({ phase: 'storing', done: 0, total: 1 });
            return await system.inventory.importHosts(name, hosts, options);
        },
    };
    await register(server, { system: { ...system, inventory } });
    await server.initialize();
    t.teardown(() => server.stop());
    const asked = async (method: string, url: string, payload?: object) => {
        const headers = { ...admin, ...(payload && { 'content-type': 'application/json' }) };
        return await server.inject({ method, url: `/admin-console${url}`, headers, ...(payload && { payload }) });
    };

    const made = await asked('POST', '/exporters', { url: await receiver(t), headers: [['X-A', 'b']], name: 'a\u202etxt.exe' });
    t.equal(made.statusCode, 200, made.payload);
    isSafe(t, made.payload, 'what was made');
    isSafe(t, (await asked('GET', '/exporters')).payload, 'a list');
    const refused = await asked('POST', '/keys', { name: 'x', [HOSTILE]: 1 });
    t.equal(refused.statusCode, 400);
    isSafe(t, refused.payload, 'a refusal');
    t.match(JSON.parse(refused.payload), { error: { code: 'INVALID_INPUT', field: HOSTILE } });

    const headers = { ...admin, 'content-type': 'application/x-ndjson', accept: 'application/x-ndjson' };
    const payload = `${JSON.stringify({ address: '192.0.2.1' })}\n`;
    const url = `/admin-console/import?${new URLSearchParams({ workspace: 'a\u202etxt.exe' })}`;
    const followed = await server.inject({ method: 'POST', url, headers, payload });
    t.match(followed.payload, /^\{"progress":/);
    isSafe(t, followed.payload, 'an import that is followed');
});
