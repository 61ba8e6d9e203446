import { once } from 'node:events';
import {
    chmodSync,
    chownSync,
    mkdirSync,
    mkdtempSync,
    readdirSync,
    readFileSync,
    rmSync,
    statSync,
    symlinkSync,
    writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { scanwireEach } from '../support/scanwire.ts';
import { fixture, said } from '../support/served.ts';

const isRoot = process.getuid?.() === 0;
const STRANGER = 65_534;
const ID = '00000000-0000-4000-8000-000000000000';

/** A folder that anybody may write to, as the temporary one of the system. */
function shared(t: Test): string {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-test-'));
    chmodSync(folder, 0o1777);
    t.teardown(() => rmSync(folder, { recursive: true, force: true }));
    return folder;
}

/** Every way into a data folder, one of each command at least. */
const COMMANDS: readonly (readonly string[])[] = [
    ['keys', 'create', 'ci'],
    ['keys', 'list'],
    ['exporters', 'create', '--url', 'https://example.com/', '--secret-env', 'HOOK_SECRET'],
    ['serve', '--port', '0'],
    ['worker', '--collector', 'default'],
    ['import', fixture('scans/hosts.jsonl')],
    ['export', '--workspace', 'default'],
    ['workspaces', 'list'],
    ['hosts', 'list'],
    ['events', 'show', ID],
    ['deliveries', 'list'],
    ['attempts', 'list'],
    ['license', 'show'],
    ['backup', 'never-written'],
    ['keyring', 'rotate'],
    ['doctor'],
    ['console'],
    ['audit', 'list'],
    ['migrate'],
    ['mcp'],
];
/** They read nothing of a data folder; `restore` makes one, where nothing may be. */
const WITHOUT = ['records', 'listen', 'restore'];
const env = { HOOK_SECRET: 'hidden', DATABASE_URL: '' };
/** What the command waits for on stdin before it looks at the folder. */
const INPUT: Readonly<Record<string, string>> = { mcp: '{"jsonrpc":"2.0","id":1,"method":"tools/list"}\n' };

async function refuses(t: Test, data: string, message: RegExp): Promise<void> {
    const ran = await scanwireEach(
        COMMANDS.map((args) => {
            const worker = args[0] === 'worker' ? { DATABASE_URL: 'postgres://127.0.0.1:9/none', REDIS_URL: 'redis://127.0.0.1:9' } : {};
            return { args: [...args, '--data', data, '--json'], env: { ...env, ...worker }, input: INPUT[args[0] ?? ''] ?? '' };
        }),
    );
    for (const [index, args] of COMMANDS.entries()) {
        const one = ran[index];
        t.match(one, { code: 1, stdout: '' }, args.join(' '));
        t.match(errorOf(one?.stderr ?? ''), { error: { code: 'MISCONFIGURED', field: 'data', message } }, args.join(' '));
    }
}

function errorOf(stderr: string): unknown {
    return stderr.startsWith('{') ? JSON.parse(stderr) : stderr;
}

t.test('tries every command that has to do with a data folder', async (t) => {
    const { stdout } = await said(['--help']);
    const names = Array.from((stdout.split('\nCommands:\n')[1] ?? '').matchAll(/^ {2}(\w+)/gm), ([, name = '']) => name);
    t.strictSame(
        [...new Set(names)].sort(),
        [...new Set([...COMMANDS.map(([name = '']) => name), ...WITHOUT])].sort(),
        'a new command is among those that are tried',
    );
});

t.test('tells no secret to a folder that somebody else has planted, nor to a server behind it', { skip: !isRoot }, async (t) => {
    const data = join(shared(t), 'scanwire-data');
    mkdirSync(data);
    chmodSync(data, 0o777);
    const socket = join(data, 'scanwire.sock');
    let asked = 0;
    const trap = createServer((request, response) => {
        asked++;
        request.resume().on('end', () => response.setHeader('content-type', 'application/json').end('{}'));
    }).listen(socket);
    await once(trap, 'listening');
    t.teardown(() => trap.close());
    writeFileSync(join(data, 'server.json'), JSON.stringify({ pid: process.pid, started: '', socket }));
    chownSync(data, STRANGER, STRANGER);

    await refuses(t, data, /belongs to user 65534 and not to 0, .*mode 0777/);
    t.equal(asked, 0);
    t.same(readdirSync(data).sort(), ['scanwire.sock', 'server.json']);
});

t.test('refuses a folder of somebody else', { skip: isRoot }, async (t) => {
    await refuses(t, '/', /^\/ belongs to user 0 and not to/);
});

t.test('follows no link', async (t) => {
    const folder = shared(t);
    const target = join(folder, 'target');
    mkdirSync(target, { mode: 0o700 });
    const data = join(folder, 'scanwire-data');
    symlinkSync(target, data);
    await refuses(t, data, /is a link/);
    t.same(readdirSync(target), []);
});

t.test('refuses a folder that others can look into, with its mode and the command that closes it', async (t) => {
    const data = join(shared(t), 'scanwire-data');
    t.equal((await said(['keys', 'list', '--data', data])).code, 1);
    t.equal((await said(['keys', 'create', 'ci', '--data', data])).code, 0);
    t.equal(statSync(data).mode & 0o777, 0o700);

    chmodSync(data, 0o755);
    await refuses(t, data, /has mode 0755.* chmod 700 /);
    chmodSync(data, 0o700);
    t.equal((await said(['keys', 'list', '--data', data])).code, 0);
});

t.test('takes nothing of a foreign project', async (t) => {
    const data = join(shared(t), 'project');
    mkdirSync(join(data, 'database'), { recursive: true, mode: 0o700 });
    writeFileSync(join(data, 'package.json'), '{}');
    const refused = await said(['keys', 'create', 'ci', '--data', data]);
    t.match(refused, { code: 1, stderr: /holds something else: name an empty or a new folder/ });
    t.same(readdirSync(data).sort(), ['database', 'package.json']);
});

t.test('heals or refuses what a crash between two files of a pair has left', async (t) => {
    const data = join(shared(t), 'scanwire-data');
    t.equal((await said(['keys', 'create', 'ci', '--data', data])).code, 0);
    const ring = readFileSync(join(data, 'key-ring.json'));
    rmSync(join(data, 'key-ring.json'));
    for (const _ of [1, 2]) {
        const refused = await said(['keys', 'list', '--data', data]);
        t.match(refused, { code: 1, stderr: /key-ring\.json is missing, which sealed the database/ });
        t.notOk(readdirSync(data).includes('key-ring.json'), 'no other ring takes its place');
    }

    writeFileSync(join(data, 'key-ring.json'), ring, { mode: 0o600 });
    rmSync(join(data, 'license', 'public-key.pem'));
    t.match(await said(['license', 'show', '--data', data]), { code: 0, stdout: /^Licence {2}valid$/m });
});
