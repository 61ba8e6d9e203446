import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { type Credentials, certificate } from '../support/certificates.ts';
import { ended, linesOf, nextJson, type Ran, type RunOptions, scanwire, startScanwire } from '../support/scanwire.ts';
import { json, said, serveIn, usedDataOf } from '../support/served.ts';

const SECRET = 'a secret that no list shows';
const HEADERS = 'Authorization: Bearer hidden-token\r\nX-Tenant: 7\n';

/** Runs the command: in a process of its own where it reads from stdin, which is a pipe then. */
function run(args: readonly string[], options: RunOptions = {}): Promise<Ran> {
    return options.input === undefined ? said(args, options) : scanwire(args, options);
}

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

/** Every secret that an exporter is given: what it is, how its file and its variable are named, and what the exporter shows of it. */
function secretsOf(
    pair: Credentials,
    certificateFile: string,
): readonly (readonly [text: string, file: string, variable: string, shown: object, ...more: string[]])[] {
    const oauth = { tokenUrl: 'https://sign-in.example.com/token', clientId: 'siem', clientSecret: SECRET };
    const withPassword = `http://siem:${encodeURIComponent(SECRET)}@proxy.example.com:3128\n`;
    return [
        [`${SECRET}\n`, '--secret-file', '--secret-env', { secret: SECRET }],
        [HEADERS, '--header-file', '--header-env', { headerNames: ['Authorization', 'X-Tenant'] }],
        [`siem:${SECRET}\n`, '--basic-file', '--basic-env', { authentication: ['basic'] }],
        [pair.key, '--client-key', '--client-key-env', { authentication: ['clientCertificate'] }, '--client-cert', certificateFile],
        [JSON.stringify(oauth), '--oauth', '--oauth-env', { authentication: ['oauth'] }],
        [withPassword, '--proxy-file', '--proxy-env', { authentication: ['proxy'] }],
        [
            `${'0123456789abcdef'.repeat(2)}\n`,
            '--format-secret-file',
            '--format-secret-env',
            { format: 'pagerduty' },
            '--format',
            'pagerduty',
        ],
    ];
}

/** A server that got its private key from stdin. */
async function servedByStdin(t: Test, data: string, cert: string, key: string): Promise<void> {
    const server = startScanwire(['serve', '--data', data, '--port', '0', '--json', '--tls-cert', cert, '--tls-key', '-']);
    t.teardown(() => server.kill('SIGKILL'));
    server.stdin?.end(key);
    t.match(await nextJson(server, linesOf(server)), { url: /^https:/ });
}

t.test('takes each secret from a file, stdin and the environment, so that no argument holds one', async (t) => {
    const data = await usedDataOf(t);
    const pair = await certificate();
    const folder = t.testdir({ cert: pair.cert });
    const [held, cert] = [join(folder, 'held'), join(folder, 'cert')];
    await servedByStdin(t, data, cert, pair.key);
    for (const [text, file, variable, shown, ...more] of secretsOf(pair, cert)) {
        writeFileSync(held, text);
        for (const { args, ...options } of [
            { args: [file, held] },
            { args: [file, '-'], input: text },
            { args: [variable, 'HELD'], env: { HELD: text } },
        ]) {
            const ran = await run(
                ['exporters', 'create', '--url', 'https://example.com/', ...args, ...more, '--data', data, '--json'],
                options,
            );
            t.match(ran, { code: 0, stderr: '' }, args.join(' '));
            t.match(JSON.parse(ran.stdout), shown, args.join(' '));
        }
    }
});

/** Has a variable of its own. */
const OTHERWISE: Readonly<Record<string, string>> = { 'scan-database-file': 'SCAN_DATABASE_URL' };
/** Options whose file holds what others may see. */
const OPEN = /^(?:body|ca|client-cert|config|filter|output|report|targets|template|tls-cert)$/;

t.test('leaves no command with an option for a secret that no variable can hold', (t) => {
    const sections = readFileSync('docs/command-line.md', 'utf8').split(/^### /m);
    let seen = 0;
    for (const section of sections) {
        const options = Array.from(section.matchAll(/^ {2}--([\w-]+) <(?:file|variable)> /gm), ([, name = '']) => name);
        for (const name of options.filter((one) => !one.endsWith('-env') && !OPEN.test(one))) {
            seen += 1;
            const variable = `${name.replace(/-file$/, '')}-env`;
            t.ok(
                options.includes(variable) || section.includes(OTHERWISE[name] ?? variable),
                `${section.split('\n', 1)[0]}: --${variable} beside --${name}`,
            );
        }
    }
    t.ok(seen >= 15, `${seen} options are looked at`);
    t.end();
});

t.test('takes the URL of a receiver, whose path may be a token, in the same ways', async (t) => {
    const url = 'https://hooks.example.com/services/T0/B0/hidden-token';
    const { key, cert } = await certificate();
    const folder = t.testdir({ url: `${url}\n`, cert });
    const file = join(folder, 'url');
    const data = await usedDataOf(t);
    await serveIn(t, { SERVER_KEY: key }, data, '--tls-cert', join(folder, 'cert'), '--tls-key-env', 'SERVER_KEY');
    const ways: { readonly args: string[]; readonly input?: string; readonly env?: Record<string, string> }[] = [
        { args: ['--url-file', file] },
        { args: ['--url-file', '-'], input: url },
        { args: ['--url-env', 'HOOK_URL'], env: { HOOK_URL: url } },
    ];
    for (const { args, ...options } of ways) {
        const ran = await run(['exporters', 'create', ...args, '--data', data, '--json'], options);
        t.match(ran, { code: 0, stderr: '' }, args.join(' '));
        const { id } = JSON.parse(ran.stdout) as { readonly id: string };
        t.match(await json(data, 'exporters', 'show', id, '--show-url'), { url });
    }

    for (const [typed, isWarnedOf] of [
        [`${url}-long-enough`, true],
        ['https://hooks.example.com/in?key=hidden-token', true],
        ['https://hooks.example.com/in', false],
    ] as const) {
        const { code, stderr } = await run(['exporters', 'create', '--url', typed, '--data', data]);
        t.equal(code, 0);
        t.equal(/--url is given.*: use --url-file FILE, --url-file - or --url-env VARIABLE$/m.test(stderr), isWarnedOf, typed);
        t.notMatch(stderr, 'hidden-token');
    }
    t.match(await run(['exporters', 'create', '--data', data]), {
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
    const data = await usedDataOf(t);
    const args = ['exporters', 'create', '--url', 'https://example.com/', '--secret', SECRET, '--header', 'X-Key: hidden-token'];
    const { code, stderr } = await run([...args, '--data', data]);
    t.equal(code, 0);
    t.match(stderr, /^scanwire: warning: .*--secret .*--secret-file FILE, --secret-file - or --secret-env VARIABLE$/m);
    t.match(stderr, /^scanwire: warning: .*--header .*--header-file FILE.*$/m);
    t.notMatch(stderr, /no list shows|hidden-token/);

    const lines = (await run([...args, '--data', data, '--json'])).stderr.trim().split('\n');
    t.match(
        lines.map((line) => JSON.parse(line)),
        [{ warning: { field: 'secret', message: String } }, { warning: { field: 'header', message: String } }],
    );
});

t.test('refuses what names no secret, or several, without repeating one', async (t) => {
    const data = await usedDataOf(t);
    const folder = t.testdir({ empty: '\n', broken: 'Authorization hidden-token' });
    const cases: [string[], RegExp][] = [
        [['--secret-env', 'NO_SUCH_VARIABLE'], /There is nothing in NO_SUCH_VARIABLE, which --secret-env names/],
        [['--secret-file', join(folder, 'empty')], /There is nothing in .*empty, which --secret-file names/],
        [['--secret-file', join(folder, 'missing')], /Cannot read .*missing: there is no such file/],
        [['--secret-file', '-', '--header-file', '-'], /Only one of --secret-file and --header-file can be read from stdin/],
        [['--secret-file', '-', '--basic-file', '-'], /Only one of --secret-file and --basic-file can be read from stdin/],
        [['--url-file', '-'], /Give --url-file, --url-env or --url, and only one of them/],
        [['--secret-file', '-', '--secret-env', 'HOME'], /only one of them/],
        [['--header-file', join(folder, 'broken')], /A header must have the form "Name: value"/],
        [['--header-file', '-', '--header-env', 'HOME'], /only one of them/],
        [['--client-key', '-', '--oauth', '-'], /Only one of --client-key and --oauth can be read from stdin/],
    ];
    for (const [args, message] of cases) {
        const ran = await run(['exporters', 'create', '--url', 'https://example.com/', ...args, '--data', data]);
        t.equal(ran.code, /only one of/i.test(ran.stderr) ? 2 : 1, args.join(' '));
        t.match(ran.stderr, message);
        t.notMatch(ran.stderr, 'hidden-token');
    }

    const both = ['exporters', 'update', 'x', '--no-header', '--header-env', 'HOME', '--data', data];
    t.match(await run(both), { code: 2, stderr: /Give either --no-header or headers/ });
});

t.test('takes the headers of one receiver to no other, unless told so', async (t) => {
    const data = await usedDataOf(t);
    const [first, second] = [await receiver(t), await receiver(t)];
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' }, data);
    const headers = join(t.testdir({ headers: HEADERS }), 'headers');
    const create = ['exporters', 'create', '--url', first.url, '--header-file', headers, '--start'];
    const { id } = await json<{ id: string }>(data, ...create);
    t.same(first.tokens, ['Bearer hidden-token']);

    const moved = await run(['exporters', 'update', id, '--url', second.url, '--data', data, '--json']);
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
