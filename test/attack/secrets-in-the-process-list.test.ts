import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { ended, linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';
import { dataOf, json, serveIn } from '../support/served.ts';

const SECRET = 'a secret that no list shows';
const HEADERS = 'Authorization: Bearer hidden-token\r\nX-Tenant: 7\n';

/** A receiver that answers 204, and what has come to it. */
async function receiver(t: Test): Promise<{ readonly url: string; readonly tokens: (string | undefined)[] }> {
    const tokens: (string | undefined)[] = [];
    const server = createServer((request, response) => {
        tokens.push(request.headers.authorization);
        request.resume().on('end', () => response.writeHead(204).end());
    }).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/in`, tokens };
}

t.test('takes secrets and headers from files, stdin and the environment, so that no argument holds one', async (t) => {
    const folder = t.testdir({
        secret: `${SECRET}\n`,
        headers: HEADERS,
        basic: `siem:${SECRET}\n`,
        proxy: `http://siem:${encodeURIComponent(SECRET)}@proxy.example.com:3128\n`,
    });
    const ways: { readonly args: string[]; readonly input?: string; readonly env?: Record<string, string> }[] = [
        { args: ['--secret-file', join(folder, 'secret'), '--header-file', join(folder, 'headers')] },
        { args: ['--secret-file', '-', '--header-file', join(folder, 'headers')], input: SECRET },
        { args: ['--secret-file', join(folder, 'secret'), '--header-file', '-'], input: HEADERS },
        { args: ['--secret-env', 'HOOK_SECRET', '--header-env', 'HOOK_HEADERS'], env: { HOOK_SECRET: SECRET, HOOK_HEADERS: HEADERS } },
    ];
    const data = dataOf(t);
    await serveIn(t, {}, data);
    const credentials = ['--basic-file', join(folder, 'basic'), '--proxy-file', join(folder, 'proxy')];
    const made = await scanwire(['exporters', 'create', '--url', 'https://example.com/', ...credentials, '--data', data]);
    t.match(made, { code: 0, stdout: /^Authentication {2}(basic, proxy|proxy, basic)$/m });
    t.notMatch(made.stdout + made.stderr, SECRET);
    for (const { args, ...options } of ways) {
        const said = await scanwire(['exporters', 'create', '--url', 'https://example.com/', ...args, '--data', data, '--json'], options);
        t.match(said, { code: 0, stderr: '' }, args.join(' '));
        t.match(JSON.parse(said.stdout), { secret: SECRET, headerNames: ['Authorization', 'X-Tenant'] });
    }
});

t.test('takes the URL of a receiver, whose path may be a token, in the same ways', async (t) => {
    const url = 'https://hooks.example.com/services/T0/B0/hidden-token';
    const file = join(t.testdir({ url: `${url}\n` }), 'url');
    const data = dataOf(t);
    await serveIn(t, {}, data);
    const ways: { readonly args: string[]; readonly input?: string; readonly env?: Record<string, string> }[] = [
        { args: ['--url-file', file] },
        { args: ['--url-file', '-'], input: url },
        { args: ['--url-env', 'HOOK_URL'], env: { HOOK_URL: url } },
    ];
    for (const { args, ...options } of ways) {
        const said = await scanwire(['exporters', 'create', ...args, '--data', data, '--json'], options);
        t.match(said, { code: 0, stderr: '' }, args.join(' '));
        const { id } = JSON.parse(said.stdout) as { readonly id: string };
        t.match(await json(data, 'exporters', 'show', id, '--show-url'), { url });
    }

    for (const [typed, isWarnedOf] of [
        [`${url}-long-enough`, true],
        ['https://hooks.example.com/in?key=hidden-token', true],
        ['https://hooks.example.com/in', false],
    ] as const) {
        const { code, stderr } = await scanwire(['exporters', 'create', '--url', typed, '--data', data]);
        t.equal(code, 0);
        t.equal(/--url is given.*: use --url-file FILE, --url-file - or --url-env VARIABLE$/m.test(stderr), isWarnedOf, typed);
        t.notMatch(stderr, 'hidden-token');
    }
    t.match(await scanwire(['exporters', 'create', '--data', data]), {
        code: 2,
        stderr: /'--url <url>', '--url-file <file>' or '--url-env <variable>'/,
    });
});

t.test('listens with a secret that the list of processes does not show', async (t) => {
    const secret = join(t.testdir({ secret: SECRET }), 'secret');
    for (const { args, env } of [
        { args: ['--secret-file', secret], env: {} },
        { args: ['--secret-env', 'HOOK_SECRET'], env: { HOOK_SECRET: SECRET } },
    ]) {
        const listening = startScanwire(['listen', '--port', '0', '--json', ...args], { env });
        t.teardown(() => listening.kill('SIGKILL'));
        const lines = linesOf(listening);
        await nextJson(listening, lines);
        if (process.platform === 'linux') {
            t.notMatch(readFileSync(`/proc/${listening.pid}/cmdline`, 'utf8'), SECRET);
        }

        t.equal(await ended(listening, 'SIGINT'), 0);
    }
});

t.test('warns of a secret among the arguments, names the other way and does not repeat it', async (t) => {
    const data = dataOf(t);
    const args = ['exporters', 'create', '--url', 'https://example.com/', '--secret', SECRET, '--header', 'X-Key: hidden-token'];
    const { code, stderr } = await scanwire([...args, '--data', data]);
    t.equal(code, 0);
    t.match(stderr, /^scanwire: warning: .*--secret .*--secret-file FILE, --secret-file - or --secret-env VARIABLE$/m);
    t.match(stderr, /^scanwire: warning: .*--header .*--header-file FILE.*$/m);
    t.notMatch(stderr, /no list shows|hidden-token/);

    const lines = (await scanwire([...args, '--data', data, '--json'])).stderr.trim().split('\n');
    t.match(
        lines.map((line) => JSON.parse(line)),
        [{ warning: { field: 'secret', message: String } }, { warning: { field: 'header', message: String } }],
    );
});

t.test('refuses what names no secret, or several, without repeating one', async (t) => {
    const data = dataOf(t);
    const folder = t.testdir({ empty: '\n', broken: 'Authorization hidden-token' });
    const cases: [string[], RegExp][] = [
        [['--secret-env', 'NO_SUCH_VARIABLE'], /There is no secret in NO_SUCH_VARIABLE/],
        [['--secret-file', join(folder, 'empty')], /There is no secret in .*empty/],
        [['--secret-file', join(folder, 'missing')], /Cannot read .*missing: there is no such file/],
        [['--secret-file', '-', '--header-file', '-'], /Only one of --secret-file and --header-file can be read from stdin/],
        [['--secret-file', '-', '--basic-file', '-'], /Only one of --secret-file and --basic-file can be read from stdin/],
        [['--url-file', '-'], /Give --url-file, --url-env or --url, and only one of them/],
        [['--secret-file', '-', '--secret-env', 'HOME'], /only one of them/],
        [['--header-file', join(folder, 'broken')], /A header must have the form "Name: value"/],
        [['--header-file', '-', '--header-env', 'HOME'], /only one of them/],
    ];
    for (const [args, message] of cases) {
        const said = await scanwire(['exporters', 'create', '--url', 'https://example.com/', ...args, '--data', data]);
        t.equal(said.code, 1, args.join(' '));
        t.match(said.stderr, message);
        t.notMatch(said.stderr, 'hidden-token');
    }

    const both = ['exporters', 'update', 'x', '--no-header', '--header-env', 'HOME', '--data', data];
    t.match(await scanwire(both), { code: 1, stderr: /Give either --no-header or headers/ });
});

t.test('takes the headers of one receiver to no other, unless told so', async (t) => {
    const data = dataOf(t);
    const [first, second] = [await receiver(t), await receiver(t)];
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' }, data);
    const headers = join(t.testdir({ headers: HEADERS }), 'headers');
    const create = ['exporters', 'create', '--url', first.url, '--header-file', headers, '--start'];
    const { id } = await json<{ id: string }>(data, ...create);
    t.same(first.tokens, ['Bearer hidden-token']);

    const moved = await scanwire(['exporters', 'update', id, '--url', second.url, '--data', data, '--json']);
    t.match(moved, { code: 1 });
    t.match(JSON.parse(moved.stderr), { error: { code: 'INVALID_INPUT', field: 'headers', message: /given again, or keepHeaders/ } });
    t.same(second.tokens, [], 'not even a test went there');
    t.match(await json(data, 'exporters', 'show', id, '--show-url'), { url: first.url });

    // Another path is the same receiver.
    await json(data, 'exporters', 'update', id, '--url', `${first.url}/two`);
    t.same(first.tokens, ['Bearer hidden-token', 'Bearer hidden-token']);

    writeFileSync(headers, 'Authorization: Bearer for-the-second');
    await json(data, 'exporters', 'update', id, '--url', second.url, '--header-file', headers);
    await json(data, 'exporters', 'update', id, '--url', first.url, '--keep-headers');
    await json(data, 'exporters', 'update', id, '--url', second.url, '--no-header');
    t.same(second.tokens, ['Bearer for-the-second', undefined]);
    t.equal(first.tokens.at(-1), 'Bearer for-the-second');
});
