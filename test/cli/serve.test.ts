import type { ChildProcess } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t, { type Test } from 'tap';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';

const fixture = (path: string): string => fileURLToPath(new URL(`../../../fixtures/${path}`, import.meta.url));

interface Served {
    readonly url: string;
    readonly certificate: string;
    readonly pid: number;
    readonly demo: {
        readonly key: { readonly id: string; readonly key: string };
        readonly exporter: { readonly id: string };
        readonly imported: { readonly hosts: { readonly created: number } } | null;
        readonly receiver: string;
        readonly test: { readonly attempt: { readonly outcome: { readonly code: string } } };
        readonly investigation: { readonly verification: { readonly ok: boolean } };
    };
}

/** A data folder of the test's own. */
function dataOf(t: Test): string {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    return join(folder, 'data');
}

async function serve(t: Test, data: string, ...more: string[]): Promise<{ readonly server: ChildProcess; readonly served: Served }> {
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json', ...more]);
    t.teardown(() => server.kill('SIGKILL'));
    return { server, served: (await nextJson(server, linesOf(server))) as unknown as Served };
}

async function get({ url, certificate }: Served, path: string, token: string): Promise<{ status: number | undefined; body: string }> {
    return new Promise((resolve, reject) => {
        const outgoing = request(`${url}${path}`, { ca: readFileSync(certificate), headers: { token }, agent: false }, async (incoming) => {
            const parts = await incoming.setEncoding('utf8').toArray();
            resolve({ status: incoming.statusCode, body: parts.join('') });
        });
        outgoing.on('error', reject).end();
    });
}

async function json<T = Record<string, unknown>>(data: string, ...args: string[]): Promise<T> {
    const { code, stdout, stderr } = await scanwire([...args, '--data', data, '--json']);
    if (code !== 0) {
        throw new Error(stderr);
    }

    return JSON.parse(stdout) as T;
}

t.test('shows the whole way at the first start, and finds it again after a kill', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data, '--demo');
    const { demo } = served;
    t.match(demo, {
        imported: { hosts: { created: 5 } },
        test: { attempt: { outcome: { code: 'delivered' } } },
        investigation: { verification: { ok: true, forms: ['base64'] } },
    });
    t.equal(statSync(join(data, 'scanwire.sock')).mode & 0o777, 0o600);
    t.equal(statSync(data).mode & 0o777, 0o700);

    const { status, body } = await get(served, '/rest_api/v2/workspaces/1/hosts', demo.key.key);
    t.equal(status, 200);
    t.equal((JSON.parse(body) as unknown[]).length, 5);
    t.equal((await get(served, '/rest_api/v2/base', 'wrong')).status, 403);

    await ended(server, 'SIGKILL');
    const again = await serve(t, data, '--demo');
    t.match(again.served.demo, {
        imported: null,
        key: demo.key,
        exporter: { id: demo.exporter.id },
        receiver: demo.receiver,
        investigation: { verification: { ok: true } },
    });
    t.equal((await json<unknown[]>(data, 'keys', 'list')).length, 1);
    t.equal((await json<unknown[]>(data, 'exporters', 'list')).length, 1);
    t.equal(await ended(again.server, 'SIGINT'), 0);
});

t.test('answers commands through its socket', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data);
    const key = await json<{ id: string; name: string; key: string }>(data, 'keys', 'create', 'ci');
    t.same(Object.keys(key), ['id', 'name', 'key']);
    t.equal((await get(served, '/rest_api/v2/base', key.key)).status, 200);
    t.same(await json(data, 'keys', 'reveal', key.id), key);

    t.match(await json(data, 'import', fixture('scans/hosts.jsonl'), '--workspace', 'lab'), {
        workspace: { name: 'lab' },
        hosts: { created: 5, updated: 0 },
    });
    t.match(await json(data, 'import', fixture('scans/services.xml'), '--workspace', 'lab'), { hosts: { created: 5 } });

    await json(data, 'keys', 'revoke', key.id);
    t.equal((await get(served, '/rest_api/v2/base', key.key)).status, 403);
    t.match(await scanwire(['keys', 'revoke', key.id, '--data', data]), { code: 1, stderr: /^scanwire: .*revoked already.*\n$/ });
    t.match(await scanwire(['keys', 'reveal', 'nonsense', '--data', data]), { code: 1, stderr: /^scanwire: Unknown API key.*\n$/ });

    t.match(await json(data, 'migrate'), { applied: [String] });
    t.match(await json(data, 'migrate'), { applied: [] });
    t.match(await json(data, 'license', 'show'), { valid: true });
    const second = await scanwire(['serve', '--data', data, '--port', '0']);
    t.match(second, { code: 1, stderr: /^scanwire: A server runs on .* already \(process \d+\)/ });
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('changes nothing for a file that is bad somewhere, and names line and reason', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    const good = '{"address":"192.0.2.1"}\n'.repeat(3000);
    const bad = await scanwire(['import', '-', '--data', data], { input: `${good}{"address":"nowhere"}\n${good}` });
    t.match(bad, { code: 1, stdout: '', stderr: /^scanwire: Line 3001: address .*\n$/ });
    t.match(await scanwire(['import', fixture('scans/interrupted.xml'), '--data', data]), {
        code: 1,
        stderr: /^scanwire: Line 19, column 0: /,
    });
    t.same(JSON.parse((await get(served, '/rest_api/v2/workspaces/1/hosts', key)).body), []);
    t.equal(await ended(server, 'SIGINT'), 0);
});

t.test('delivers to a receiver that verifies, and opens loopback to nothing else', async (t) => {
    const data = dataOf(t);
    const secret = 'a secret of ours';
    const receiver = startScanwire(['listen', '--port', '0', '--secret', secret, '--json']);
    t.teardown(() => receiver.kill('SIGKILL'));
    const messages = linesOf(receiver);
    const { listening } = (await nextJson(receiver, messages)) as { listening: string };
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json'], {
        env: { SCANWIRE_EGRESS_ALLOW: `198.51.100.0/24, ${new URL(listening).host}` },
    });
    t.teardown(() => server.kill('SIGKILL'));
    await nextJson(server, linesOf(server));

    const refused = await scanwire(['exporters', 'create', '--url', 'http://127.0.0.1:9/', '--data', data]);
    t.match(refused, { code: 1, stderr: /^scanwire: url points to a loopback address/ });

    const settings = [
        '--secret',
        secret,
        '--name',
        'Ours',
        '--header',
        'Authorization: Bearer x',
        '--signature',
        'hex',
        '--signature',
        'standard-webhooks',
    ];
    const exporter = await json<{ id: string; secret: string }>(data, 'exporters', 'create', '--url', listening, ...settings, '--start');
    t.match(exporter, { secret, state: 'running', test: { attempt: { outcome: { code: 'delivered', status: 204 } } } });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: true, forms: ['hex', 'standard-webhooks'] });

    const published = await json<{ deliveries: string[] }>(
        data,
        'events',
        'publish',
        'idr_investigation_created',
        fixture('events/investigation.json'),
    );
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });
    const [delivery = ''] = published.deliveries;
    t.match(await json(data, 'deliveries', 'list', '--state', 'delivered', '--exporter', exporter.id, '--limit', '5'), [
        { id: delivery },
        {},
    ]);
    t.match(await json(data, 'deliveries', 'show', delivery), {
        state: 'delivered',
        attempts: [{ number: 1, startedAt: String, finishedAt: String, outcome: { code: 'delivered', status: 204 } }],
    });
    await json(data, 'deliveries', 'replay', delivery);
    t.match(await nextJson(receiver, messages), { event: 'idr_investigation_created', verified: true });

    const wrong = await scanwire([
        'exporters',
        'update',
        exporter.id,
        '--secret',
        'another secret',
        '--no-header',
        '--data',
        data,
        '--json',
    ]);
    t.match(JSON.parse(wrong.stdout), { headerNames: [], test: { attempt: { outcome: { code: 'client_error', status: 401 } } } });
    t.match(await nextJson(receiver, messages), { event: 'test', verified: false, forms: [], reason: String });
    t.match(await scanwire(['exporters', 'test', exporter.id, '--data', data]), { code: 1, stdout: /^Test failed: client_error 401/ });

    t.match(await json(data, 'exporters', 'stop', exporter.id), { state: 'stopped' });
    t.match(await json(data, 'exporters', 'show', exporter.id), { name: 'Ours' });
    t.match(await json(data, 'exporters', 'remove', exporter.id), { removed: true });
    t.match(await scanwire(['exporters', 'show', exporter.id, '--data', data]), { code: 1, stderr: /^scanwire: Unknown exporter/ });
    t.equal(await ended(server, 'SIGINT'), 0);
    t.equal(await ended(receiver, 'SIGINT'), 0);
});

t.test('says in one line why it cannot start', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data);
    const port = new URL(served.url).port;
    const inUse = await scanwire(['serve', '--data', `${data}-2`, '--port', port]);
    t.match(inUse, { code: 1, stderr: new RegExp(`^scanwire: Port ${port} of 127.0.0.1 is in use: choose another with --port\\n$`) });
    t.equal(await ended(server, 'SIGINT'), 0);

    const env = { DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' };
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env }), { code: 1, stderr: /^scanwire: [^\n]+\n$/ });
    t.match(await scanwire(['serve', '--data', data, '--port', '0'], { env: { SCANWIRE_EGRESS_ALLOW: 'a b' } }), {
        code: 1,
        stderr: /^scanwire: [^\n]*egress allow list[^\n]*\n$/,
    });
    chmodSync(data, 0o700);
});

t.test('lets commands work on the stores where no server runs', async (t) => {
    const data = dataOf(t);
    const key = await json<{ id: string; key: string }>(data, 'keys', 'create', 'offline');
    t.match(await json(data, 'keys', 'list'), [{ id: key.id, name: 'offline' }]);
    t.match(await json(data, 'import', fixture('scans/udp.xml')), { workspace: { name: 'default' }, hosts: { created: 1 } });
    t.match(await json(data, 'events', 'publish', 'idr_investigation_created', fixture('events/investigation.json')), { deliveries: [] });

    const { server, served } = await serve(t, data);
    t.equal((await get(served, '/rest_api/v2/workspaces', key.key)).status, 200);
    t.equal(await ended(server, 'SIGINT'), 0);
});
