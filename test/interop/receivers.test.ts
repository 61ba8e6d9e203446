/*
 * Other people's receivers, and the code of docs/receivers.md, on messages that a served exporter has sent them. What is not on the machine
 * the run of the tests installs where it may; else it is skipped, as test/allowed-skips.json says.
 */
import { execFile, spawn } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import Hapi from '@hapi/hapi';
import { type CloudEvent, HTTP } from 'cloudevents';
import { Redis } from 'ioredis';
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { verify } from '../../lib/verify/index.ts';
import type { SignatureForm } from '../../lib/webhooks/setting-values.ts';
import { plugin as webhookAuth } from '../../plugins/webhook-auth/index.ts';
import { findOnPath } from '../support/find-program.ts';
import { freePort } from '../support/free-port.ts';
import { answers, changed, KIND, post, SECRET, sendingExporter, TITLE } from './sending-exporter.ts';

const PAGE = readFileSync('docs/receivers.md', 'utf8');
const { delivered } = await sendingExporter(t);

const isMissing = (program: string): string | false => (findOnPath(program) === null ? `there is no ${program}` : false);

t.test("is taken by Debian's webhook in the forms that it knows", { skip: isMissing('webhook') }, async (t) => {
    const [, page = ''] = /^```json\n(.*?)^```$/ms.exec(PAGE) ?? [];
    const hook = (id: string, header: string): object => ({
        ...JSON.parse(page.replace('the secret of the exporter', SECRET).replace('X-Vendor-Signature', header)),
        id,
        'execute-command': '/bin/echo',
        'include-command-output-in-response': true,
    });
    const hooks = [hook('first', 'X-Vendor-Signature'), hook('second', 'X-Vendor-Signature-Sha256')];
    const folder = t.testdir({ 'hooks.json': JSON.stringify(hooks) });
    const port = await freePort();
    const args = ['-hooks', join(folder, 'hooks.json'), '-ip', '127.0.0.1', '-port', String(port)];
    const product = spawn('webhook', args, { stdio: 'ignore' });
    t.teardown(() => product.kill());
    await until(() => answers(port));

    for (const [forms, name] of [
        [['hex'], 'first'],
        [['sha256-hex'], 'first'],
        [['base64', 'sha256-hex'], 'second'],
    ] as const) {
        const url = `http://127.0.0.1:${port}/hooks/${name}`;
        const { headers, body, ...answer } = await delivered(t, forms, url);
        t.strictSame(answer, { status: 200, text: `${TITLE}\n` }, forms.join());
        t.equal((await post(url, headers, changed(body))).status, 403, `${forms.join()}, changed`);
    }

    const { status } = await delivered(t, ['base64'], `http://127.0.0.1:${port}/hooks/first`);
    t.equal(status, 403, 'base64 is not among them');
});

t.test('is taken by standardwebhooks', async (t) => {
    const { headers, body } = await delivered(t, ['standard-webhooks']);
    const product = new Webhook(Buffer.from(SECRET).toString('base64'));
    t.match(product.verify(body, headers as Record<string, string>), { title: TITLE });
    t.throws(() => product.verify(changed(body), headers as Record<string, string>), { name: 'WebhookVerificationError' });
});

t.test('is taken by the HTTP binding of the CloudEvents SDK in both modes', async (t) => {
    for (const format of ['cloudevents', 'cloudevents-binary']) {
        const { headers, body } = await delivered(t, ['base64'], undefined, format);
        const read = HTTP.toEvent({ headers, body: body.toString() }) as CloudEvent<{ readonly title: string }>;
        t.ok(read.validate(), format);
        t.match(read, { type: KIND, source: '/Vendor/webhook-exporter', data: { title: TITLE } });
        t.equal(headers['x-vendor-event'], KIND);
        t.ok(verify(body, headers, { secrets: [SECRET] }), 'signed over what was sent');
        t.throws(() => HTTP.toEvent({ headers, body: '{' }), format);
    }
});

t.test('is taken by scanwire/verify and scanwire/webhook-auth in every form', async (t) => {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    await server.register({ plugin: webhookAuth, options: { secrets: [SECRET] } });
    server.route<{ Payload: { title: string } }>({
        method: 'POST',
        path: '/',
        options: { auth: 'webhook' },
        handler: ({ payload }) => payload.title,
    });
    await server.start();
    t.teardown(() => server.stop());

    const all: SignatureForm[] = ['sha256-hex', 'standard-webhooks', 'hex', 'base64'];
    for (const forms of [...all.map((form) => [form]), all]) {
        const { headers, body, ...answer } = await delivered(t, forms, server.info.uri);
        t.strictSame(answer, { status: 200, text: TITLE }, forms.join());
        t.equal((await post(server.info.uri, headers, changed(body))).status, 401, `${forms.join()}, changed`);

        const verified = verify(body, headers, { secrets: [SECRET], vendor: 'Vendor' });
        t.match(verified, { kind: KIND, id: forms.includes('standard-webhooks') ? String : null });
        t.strictSame(verified.forms.toSorted(), forms.toSorted());
        t.throws(() => verify(changed(body), headers, { secrets: [SECRET] }), { code: 'UNVERIFIED' });
    }
});

/** How the code of the page is run: asked with a file, `SIGNATURE` and `SECRET`, it ends with 0 or, where it says no, with 3. */
interface Recipe {
    readonly program: string;
    readonly files: (code: string) => Readonly<Record<string, string>>;
    readonly args: readonly string[];
    /** Once, before it is asked. */
    readonly build?: readonly string[];
}

const GO_MAIN = `package main
import "os"
func main() {
    body, err := os.ReadFile(os.Args[1])
    if err != nil { panic(err) }
    if !verified(body, os.Getenv("SIGNATURE"), os.Getenv("SECRET")) { os.Exit(3) }
}
`;

const RECIPES: Readonly<Record<string, Recipe>> = {
    js: {
        program: 'node',
        files: (code) => ({
            'verified.mjs': code,
            'main.mjs': `import { readFileSync } from 'node:fs';
                import { verified } from './verified.mjs';
                const { SIGNATURE, SECRET } = process.env;
                process.exit(verified(readFileSync(process.argv[2]), SIGNATURE, SECRET) ? 0 : 3);`,
        }),
        args: ['main.mjs'],
    },
    python: {
        program: 'python3',
        files: (code) => ({
            'main.py': `${code}
import os, sys
body = open(sys.argv[1], "rb").read()
sys.exit(0 if verified(body, os.environ.get("SIGNATURE"), os.environ["SECRET"]) else 3)
`,
        }),
        args: ['main.py'],
    },
    go: {
        program: 'go',
        files: (code) => ({ 'verified.go': `package main\n\n${code}`, 'main.go': GO_MAIN }),
        build: ['build', '-o', 'main', 'verified.go', 'main.go'],
        args: [],
    },
    ruby: {
        program: 'ruby',
        files: (code) => ({ 'main.rb': `${code}\nexit(verified(File.binread(ARGV[0]), ENV["SIGNATURE"], ENV["SECRET"]) ? 0 : 3)\n` }),
        args: ['main.rb'],
    },
    php: {
        program: 'php',
        files: (code) => ({
            'main.php': `<?php
${code}
$signature = getenv('SIGNATURE');
exit(verified(file_get_contents($argv[1]), $signature === false ? null : $signature, getenv('SECRET')) ? 0 : 3);
`,
        }),
        args: ['main.php'],
    },
    sh: {
        program: 'sh',
        files: (code) => ({ 'main.sh': `${code}\nverified "$1" "\${SIGNATURE-}" || exit 3\n` }),
        args: ['main.sh'],
    },
};

/** The block of the page that defines `verified` in the language. */
function recipeOf(language: string): string {
    const blocks = [...PAGE.matchAll(new RegExp(`^\`\`\`${language}\\n(.*?)^\`\`\`$`, 'gms'))].map(([, code = '']) => code);
    const [recipe, ...others] = blocks.filter((code) => /(?:function|def|func) verified|^verified\(\)/m.test(code));
    t.equal(others.length, 0, `one recipe in ${language}`);
    return present(recipe, `the recipe in ${language}`);
}

const message = await delivered(t, ['base64']);

for (const [language, { program, files, args, build }] of Object.entries(RECIPES)) {
    t.test(`is verified by the code in the docs, in ${language}`, { skip: isMissing(program) }, async (t) => {
        const signature = String(message.headers['x-vendor-signature']);
        const folder = t.testdir({ ...files(recipeOf(language)), right: message.body, changed: changed(message.body), empty: '' });
        const run = (command: string, given: readonly string[], env: Readonly<Record<string, string>> = {}): Promise<string | number> =>
            new Promise((resolve) => {
                const own = { PATH: process.env.PATH, HOME: folder, GOCACHE: join(folder, 'cache'), ...env };
                execFile(command, [...given], { cwd: folder, env: own }, (error, _stdout, stderr) =>
                    resolve(stderr === '' ? (error?.code ?? 0) : stderr),
                );
            });
        if (build !== undefined) {
            t.equal(await run(program, build), 0);
        }

        const ask = (file: string, env: Readonly<Record<string, string>>): Promise<string | number> =>
            build === undefined ? run(program, [...args, file], env) : run(join(folder, 'main'), [file], env);
        t.equal(await ask('right', { SECRET, SIGNATURE: signature }), 0, 'what was sent');
        t.equal(await ask('changed', { SECRET, SIGNATURE: signature }), 3, 'another body');
        t.equal(await ask('empty', { SECRET, SIGNATURE: signature }), 3, 'no body');
        t.equal(await ask('right', { SECRET: 'another', SIGNATURE: signature }), 3, 'another secret');
        for (const wrong of ['', 'x', signature.slice(0, -4), `${signature}${signature}`, signature.toLowerCase(), 'ü']) {
            t.equal(await ask('right', { SECRET, SIGNATURE: wrong }), 3, `the signature ${JSON.stringify(wrong)}`);
        }
        t.equal(await ask('right', { SECRET }), 3, 'no signature');
    });
}

/** The blocks of the page that import from there, each as a function of what it stands in. */
async function examples(subpath: string, parameters: string, end: string): Promise<readonly ((...given: unknown[]) => unknown)[]> {
    // Beside the built package, where its name leads to it.
    const folder = 'build/docs-receivers';
    mkdirSync(folder, { recursive: true });
    const blocks = [...PAGE.matchAll(/^```js\n\/\/ \S+\.js\n(import [^\n]*)\n(.*?)^```$/gms)].filter(([block]) =>
        block.includes(`'scanwire/${subpath}'`),
    );
    return await Promise.all(
        blocks.map(async ([, imports, code], index) => {
            const file = join(folder, `${subpath}-${index}.mjs`);
            writeFileSync(file, `${imports}\nexport default async (${parameters}) => {\n${code}\n${end}\n};\n`);
            return ((await import(pathToFileURL(file).href)) as { default: (...given: unknown[]) => unknown }).default;
        }),
    );
}

t.test('the examples of scanwire/verify run as they stand', async (t) => {
    const { headers, body } = await delivered(t, ['standard-webhooks']);
    const redis = new Redis(String(process.env.REDIS_URL));
    t.teardown(() => redis.disconnect());
    const receiver = { env: { WEBHOOK_SECRET: SECRET } };
    const run = await examples('verify', 'body, request, process, redis', "return [id, typeof isNew === 'boolean' ? isNew : null];");
    t.equal(run.length, 3);
    const seen: unknown[] = [];
    for (const example of run) {
        for (let times = 0; times < 2; times += 1) {
            const [id, isNew] = (await example(body, { headers }, receiver, redis)) as readonly [string, boolean | null];
            t.equal(id, headers['webhook-id']);
            seen.push(isNew);
        }
        await t.rejects(example(changed(body), { headers }, receiver, redis) as Promise<unknown>, { code: 'UNVERIFIED' });
    }
    t.same(seen, [null, null, null, null, true, false], 'a shared store tells what has come before');
});

t.test('the example of scanwire/webhook-auth runs as it stands', async (t) => {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    const aside: unknown[] = [];
    const [example, ...others] = await examples('webhook-auth', 'server, putAside, process', '');
    t.equal(others.length, 0);
    await example?.(server, (...given: unknown[]) => aside.push(given), { env: { WEBHOOK_SECRET: SECRET } });
    await server.start();
    t.teardown(() => server.stop());
    t.equal((await delivered(t, ['base64'], `${server.info.uri}/hook`)).status, 204);
    t.match(aside, [
        ['test', {}],
        [KIND, { title: TITLE }],
    ]);
});
