import { randomBytes } from 'node:crypto';
import { readFileSync, writeFileSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import { createConfig, lintFromString } from '@redocly/openapi-core';
import { generateSource } from 'oazapfts';
import t from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, get, json, said, serve, usedDataOf } from '../support/served.ts';

t.test('answers commands through its socket', async (t) => {
    const data = dataOf(t);
    const { server, served } = await serve(t, data);
    const key = await json<{ id: string; name: string; key: string }>(
        data,
        'keys',
        'create',
        'ci',
        '--scope',
        'admin',
        '--scope',
        'inventory:read',
    );
    t.same(Object.keys(key), ['id', 'name', 'key']);
    t.equal((await get(served, '/rest_api/v2/base', key.key)).status, 200);
    t.same(await json(data, 'keys', 'reveal', key.id), key);

    t.match(await json(data, 'import', fixture('scans/hosts.jsonl'), '--workspace', 'lab'), {
        workspace: { name: 'lab' },
        hosts: { new: 5, changed: 0, unchanged: 0, gone: 0, refused: 0 },
    });
    t.match(await json(data, 'import', fixture('scans/services.xml'), '--workspace', 'lab'), { hosts: { new: 5 } });

    const expire = ['hosts', 'expire', '--workspace', 'lab', '--not-seen'];
    t.same(await json(data, ...expire, '1d'), { hosts: 0 });
    const now = new Date().toISOString();
    t.match(await said([...expire, now, '--dry-run', '--data', data]), { code: 0, stdout: 'Would remove 10 hosts of lab\n' });
    t.match(await said([...expire, '2999-01-31', '--dry-run', '--data', data]), { code: 1, stderr: /must not be later than now/ });

    const limited = ['--workspace', '2', '--workspace', '7', '--expires', '90d'];
    const { key: partner } = await json<{ key: string }>(data, 'keys', 'create', 'partner', ...limited);
    t.match(JSON.parse((await get(served, '/rest_api/v2/workspaces', partner)).body), [{ id: 2 }]);
    t.equal((await get(served, '/rest_api/v2/workspaces/1', partner)).status, 404);
    t.match(await said(['keys', 'list', '--data', data]), { code: 0, stdout: / 2 7 .*in (?:2|3) months/ });
    await json(data, 'keys', 'create', 'until', '--expires', '2999-01-31T00:00Z');
    t.match((await json<object[]>(data, 'keys', 'list')).at(-1), {
        workspaces: null,
        expiresAt: '2999-01-31T00:00:00.000Z',
        expired: false,
    });
    for (const wrong of ['90', '2999-01-31 00:00']) {
        t.match(await said(['keys', 'create', 'a', '--expires', wrong, '--data', data]), { code: 2, stderr: /It must be a span/ }, wrong);
    }
    const past = await said(['keys', 'create', 'a', '--expires', '2020-01-31', '--data', data]);
    t.match(past, { code: 1, stderr: 'scanwire: expiresAt must be in the future\n' });

    await json(data, 'keys', 'revoke', key.id);
    t.equal((await get(served, '/rest_api/v2/base', key.key)).status, 403);
    t.match(await said(['keys', 'revoke', key.id, '--data', data]), { code: 1, stderr: /^scanwire: .*revoked already.*\n$/ });
    t.match(await said(['keys', 'reveal', 'nonsense', '--data', data]), { code: 1, stderr: /^scanwire: Unknown API key.*\n$/ });

    const found = await said(['doctor', '--data', data]);
    t.match(found, {
        code: 0,
        stdout: /^PART +STATE +FOUND\nstore +ok +The embedded database answers\n(.+\n)+disk +(?:ok|warning) +[\d.]+ GiB are free at/,
    });
    t.match(found.stdout, /^queue +ok +The queue in this process has taken/m);
    t.match(await json(data, 'migrate'), { applied: [String] });
    t.match(await json(data, 'migrate'), { applied: [] });
    t.match(await json(data, 'license', 'show'), { valid: true });
    const second = await scanwire(['serve', '--data', data, '--port', '0']);
    t.match(second, { code: 1, stderr: /^scanwire: A server runs on .* already \(process \d+\)/ });
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('changes nothing for a file that is bad somewhere, and names line and reason', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    const good = '{"address":"192.0.2.1"}\n'.repeat(3000);
    const bad = await said(['import', '-', '--data', data], { input: `${good}{"address":"nowhere"}\n${good}` });
    t.match(bad, { code: 1, stdout: '', stderr: /^scanwire: Line 3001: address .*\n$/ });
    t.match(await said(['import', fixture('scans/interrupted.xml'), '--data', data]), {
        code: 1,
        stderr: /^scanwire: Line 19, column 0: /,
    });
    t.match(await said(['import', fixture('scans/hosts.jsonl'), '--workspace', ' ', '--data', data]), {
        code: 1,
        stderr: 'scanwire: workspace is not allowed to be empty\n',
    });
    t.same(JSON.parse((await get(served, '/rest_api/v2/workspaces/1/hosts', key)).body), []);
    t.equal(JSON.parse((await get(served, '/rest_api/v2/workspaces', key)).body).length, 1);
    t.equal(await ended(server, 'SIGINT'), 0);
});

/** Status and body of an answer to a request that no command would make. */
function answer(
    data: string,
    method: string,
    path: string,
    body = '',
): Promise<{ readonly status: number | undefined; readonly body: string }> {
    return new Promise((resolve, reject) => {
        const headers = { 'content-type': 'application/json', 'content-length': Buffer.byteLength(body) };
        const outgoing = request({ socketPath: join(data, 'scanwire.sock'), method, path, headers, agent: false }, async (incoming) => {
            const parts = await incoming.setEncoding('utf8').toArray();
            resolve({ status: incoming.statusCode, body: parts.join('') });
        });
        outgoing.on('error', reject).end(body);
    });
}

/** Status and code of such an answer. */
async function ask(...asked: Parameters<typeof answer>): Promise<string> {
    const { status, body } = await answer(...asked);
    return `${status} ${JSON.parse(body).error.code}`;
}

t.test('describes its administration, so that a public linter has nothing to say and a client can be made', async (t) => {
    const data = await usedDataOf(t);
    await serve(t, data);
    const { status, body } = await answer(data, 'GET', '/openapi.json');
    t.equal(status, 200);
    const problems = await lintFromString({ source: body, config: await createConfig({ extends: ['recommended-strict'] }) });
    t.strictSame(
        problems.map(({ ruleId, message, location }) => `${ruleId}: ${message} (${location[0]?.pointer})`),
        [],
    );
    const document = JSON.parse(body);
    t.match(document, { openapi: '3.1.0', paths: { '/exporters/{id}/explain': { post: {} }, '/keys': { get: {}, post: {} } } });
    t.notMatch(body, /rest_api|authentication of the application/);
    writeFileSync(join(data, 'api.json'), body);
    t.match(await generateSource(join(data, 'api.json')), /export function adminConsoleCreateKey/);
});

t.test('refuses input of a wrong type as wrong input', async (t) => {
    const data = await usedDataOf(t);
    await serve(t, data);
    for (const [method, path, body] of [
        ['POST', '/license', '{}'],
        ['POST', '/license', '{"text":7}'],
        ['POST', '/exporters', '{}'],
        ['POST', '/exporters', '{"settings":null}'],
        ['GET', '/deliveries?limit=x', ''],
        ['GET', '/deliveries?state=%00', ''],
        ['GET', '/deliveries?after=a&after=b', ''],
        ['POST', '/import', '{"address":"192.0.2.1"}'],
        ['POST', '/import?workspace=a&workspace=b', '{"address":"192.0.2.1"}'],
        ['POST', '/import?workspace=%1b', '{"address":"192.0.2.1"}'],
    ] as const) {
        t.equal(await ask(data, method, path, body), '400 INVALID_INPUT', `${method} ${path} ${body}`);
    }
});

t.test('seals everything again with another key, with and without a server', async (t) => {
    const data = await usedDataOf(t);
    const { id, key } = await json<{ id: string; key: string }>(data, 'keys', 'create', 'ci');
    const file = join(data, 'key-ring.json');
    const { current, keys } = JSON.parse(readFileSync(file, 'utf8')) as { current: string; keys: Record<string, string> };
    const added = randomBytes(32).toString('base64');
    writeFileSync(file, JSON.stringify({ current: 'another', keys: { ...keys, another: added } }));
    t.strictSame(await json(data, 'keyring', 'rotate'), { sealed: 1, unopened: [] });

    writeFileSync(file, JSON.stringify({ current: 'another', keys: { another: added } }));
    t.match(await json(data, 'keys', 'reveal', id), { key });
    const secret = ['--overlap', '2h', '--secret-env', 'HOME', '--data', data];
    t.match(await said(['exporters', 'update', id, ...secret]), { code: 1, stderr: 'scanwire: Unknown exporter (id)\n' });
    t.match(await said(['exporters', 'update', id, '--overlap', '2 h']), {
        code: 2,
        stderr: /It must be a span such as 30m, 2h or 7d, or 0/,
    });
    writeFileSync(file, JSON.stringify({ current, keys: { ...keys, another: added } }));
    await serve(t, data);
    t.match(await said(['keyring', 'rotate', '--data', data]), {
        code: 0,
        stdout: 'Sealed again: 1. The current key is the only one that is needed\n',
    });
});
