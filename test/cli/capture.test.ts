import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { createWriteStream, existsSync, readFileSync, statSync, truncateSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { gunzipSync, gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { checkRecord } from '../../lib/records/index.ts';
import { certificate } from '../support/certificates.ts';
import { commandsInOneProcess, type Ran, startScanwire } from '../support/scanwire.ts';

const { run: scanwire, end } = commandsInOneProcess();
t.teardown(end);

const credentials = await certificate();
const env = { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
const COUNT = 40;

/** Answers with the path, after so many milliseconds. */
async function served(t: Test, delay = 0): Promise<number> {
    const server = createServer(credentials, (request, response) => void setTimeout(() => response.end(request.url), delay));
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return (server.address() as AddressInfo).port;
}

function capture(args: readonly string[], input?: string): Promise<Ran> {
    return scanwire(['records', 'capture', ...args], { env, ...(input !== undefined && { input }) });
}

/** The paths of the records, sorted; each record passes the strict profile. */
function pathsOf(t: Test, lines: string): (string | undefined)[] {
    return lines
        .trimEnd()
        .split('\n')
        .map((line) => {
            const checked = checkRecord(JSON.parse(line));
            t.ok(checked.ok);
            return checked.ok ? checked.record.path : undefined;
        })
        .sort();
}

const paths = (count: number): string[] => Array.from({ length: count }, (_, index) => `/${index}`).sort();

t.test('writes records to stdout and the summary to stderr', async (t) => {
    const port = await served(t);
    const { code, stdout, stderr } = await capture([
        `https://web.example.test:${port}/x`,
        `127.0.0.2:${port}`,
        '--connect-to',
        '127.0.0.1',
    ]);
    t.equal(code, 0);
    t.same(pathsOf(t, stdout), ['/', '/x']);
    t.match(
        stdout,
        /^\{"data":"[^"]+","host":"[^"]+","ip":"127\.0\.0\.1","path":"\/x?","port":\d+(,"vhost":"[^"]+")?,"subject":\{"CN":"good\.test"\}\}\n/,
    );
    t.equal(stderr, '2 captured, 0 failed\n');

    const packed = await capture([
        `127.0.0.1:${port}`,
        '--json',
        '--accept-encoding',
        'gzip',
        '--max-bytes',
        '20',
        '--user-agent',
        'probe',
    ]);
    t.match(JSON.parse(packed.stderr), { captured: 1, failed: 0, skipped: 0, failures: [], stopped: false });
    t.equal(Buffer.from(JSON.parse(packed.stdout).data, 'base64').length, 20);
});

t.test('lists what failed, bad lines included, and leaves with 1', async (t) => {
    const port = await served(t);
    const output = join(t.testdir(), 'records.jsonl');
    const list = `# some\n127.0.0.1:${port}\nhttp://a.test/\nhttps://a.test:${port}/b 127.0.0.1\n10.0.0.1\n`;
    const { code, stdout, stderr } = await capture(['--targets', '-', '--output', output], list);
    t.equal(code, 1);
    t.equal(stderr, '');
    t.match(stdout, /line 3 +is not an https URL\n/);
    t.match(stdout, /https:\/\/10\.0\.0\.1\/ +10\.0\.0\.1 is a private address/);
    t.match(stdout, /\n2 captured, 2 failed\n$/);
    t.notMatch((await capture(['127.0.0.1:1'])).stderr, 'SCANWIRE_EGRESS_ALLOW');
    t.same(pathsOf(t, readFileSync(output, 'utf8')), ['/', '/b']);

    const { code: closed, stderr: reason } = await scanwire(['records', 'capture', `127.0.0.1:${port}`]);
    t.equal(closed, 1);
    t.match(reason, /loopback address, which may not be called/, 'without SCANWIRE_EGRESS_ALLOW');
    t.match(reason, /\nSCANWIRE_EGRESS_ALLOW opens addresses that are not public\n0 captured/);
});

t.test('leaves with 2 after wrong usage', async (t) => {
    const cases: readonly [string[], RegExp][] = [
        [[], /missing required argument 'target', or --targets/],
        [['a.test', 'http://b.test/'], /Target 2 is not an https URL/],
        [['a.test', '--resume'], /'--resume' needs '--output <file>'/],
        [['a.test', '--connect-to', 'b.test'], /must be an IP address/],
        [['a.test', '--concurrency', '0'], /whole number from 1 to 1000/],
        [['a.test', '--max-bytes', '1048576'], /whole number/],
    ];
    for (const [args, message] of cases) {
        const { code, stdout, stderr } = await capture(args);
        t.equal(code, 2, args.join(' '));
        t.equal(stdout, '');
        t.match(stderr, message);
    }
});

t.test('packs a file whose name says so', async (t) => {
    const output = join(t.testdir(), 'records.jsonl.GZ');
    t.equal((await capture([`127.0.0.1:${await served(t)}`, '--output', output])).code, 0);
    t.same(pathsOf(t, gunzipSync(readFileSync(output)).toString()), ['/']);
});

for (const packed of [false, true]) {
    const form = packed ? 'packed' : 'plain';
    const more = packed ? ['--gzip'] : [];
    const read = (file: string): string => (packed ? gunzipSync(readFileSync(file)) : readFileSync(file)).toString();

    t.test(`goes on after kill -9 and a last record that was cut, in a ${form} file`, async (t) => {
        const port = await served(t, 20);
        const output = join(t.testdir(), 'records');
        const list = join(t.testdir({ list: '' }), 'list');
        writeFileSync(
            list,
            paths(COUNT)
                .map((path) => `https://127.0.0.1:${port}${path}\n`)
                .join(''),
        );
        const args = ['--targets', list, '--output', output, ...more];

        const child = startScanwire(['records', 'capture', ...args, '--concurrency', '2'], { env });
        await until(() => existsSync(output) && statSync(output).size > 1000);
        child.kill('SIGKILL');
        await once(child, 'close');
        truncateSync(output, statSync(output).size - 9);

        t.match(await capture(args), { code: 1, stderr: /holds something: go on with it by --resume/ });
        const resumed = await capture([...args, '--resume', '--json']);
        t.equal(resumed.code, 0);
        const { captured, skipped } = JSON.parse(resumed.stdout);
        t.equal(captured + skipped, COUNT);
        t.ok(skipped > 0 && captured > 0);
        t.same(pathsOf(t, read(output)), paths(COUNT));

        const before = readFileSync(output);
        t.match(await capture([...args, '--resume']), { code: 0, stdout: `0 captured, 0 failed, ${COUNT} there already\n` });
        t.same(readFileSync(output), before);
    });

    t.test(`refuses to go on with a ${form} file of something else, and leaves it alone`, async (t) => {
        const output = join(t.testdir({ notes: 'dear diary\nand so on\n' }), 'notes');
        t.match(await capture(['127.0.0.1:1', '--output', output, '--resume', ...more]), {
            code: 1,
            stderr: /^scanwire: Cannot go on with the output file/,
        });
        t.equal(readFileSync(output, 'utf8'), 'dear diary\nand so on\n');
    });

    t.test(`refuses a ${form} file whose only line is cut off from something else, and leaves it alone`, async (t) => {
        const packed = gzipSync('dear diary').subarray(0, -3);
        for (const content of [Buffer.from('dear diary'), Buffer.alloc(2_000_000, 'x'), packed]) {
            const output = join(t.testdir({ notes: content }), 'notes');
            t.match(await capture(['127.0.0.1:1', '--output', output, '--resume', ...more]), {
                code: 1,
                stderr: /^scanwire: Cannot go on with the output file/,
            });
            t.ok(readFileSync(output).equals(content));
        }
    });
}

t.test('keeps a last line that lacks nothing but its end, and tries again what failed', async (t) => {
    const port = await served(t);
    const output = join(t.testdir(), 'records.jsonl');
    const target = `https://127.0.0.1:${port}/0`;
    t.match(await capture([target, '127.0.0.1:1', '--output', output]), { code: 1, stdout: /1 captured, 1 failed/ });
    truncateSync(output, statSync(output).size - 1);
    const again = await capture([target, '127.0.0.1:1', `https://127.0.0.1:${port}/1`, '--output', output, '--resume']);
    t.match(again, { code: 1, stdout: /1 captured, 1 failed, 1 there already/ });
    t.same(pathsOf(t, readFileSync(output, 'utf8')), ['/0', '/1']);
});

t.test('stops at Ctrl-C with what it has in the file', async (t) => {
    const port = await served(t, 20);
    const output = join(t.testdir(), 'records.jsonl');
    const child = startScanwire(['records', 'capture', '--targets', '-', '--output', output, '--json', '--concurrency', '2'], { env });
    let stdout = '';
    child.stdout?.on('data', (text) => {
        stdout += text;
    });
    child.stdin?.write(
        paths(COUNT)
            .map((path) => `https://127.0.0.1:${port}${path}\n`)
            .join(''),
    );
    await until(() => existsSync(output) && statSync(output).size > 1000);
    child.kill('SIGINT');
    const [code] = await once(child, 'close');
    t.equal(code, 1);
    const { captured, failed, stopped } = JSON.parse(stdout);
    t.match({ failed, stopped }, { failed: 0, stopped: true });
    t.equal(pathsOf(t, readFileSync(output, 'utf8')).length, captured);
});

t.test('ends at a signal while the pipe of its targets is silent', async (t) => {
    const port = await served(t);
    const folder = t.testdir();
    const [targets, output] = [join(folder, 'targets'), join(folder, 'records.jsonl')];
    execFileSync('mkfifo', [targets]);
    const child = startScanwire(['records', 'capture', '--targets', targets, '--output', output], { env });
    const writer = createWriteStream(targets);
    t.teardown(() => writer.destroy());
    writer.write(`https://127.0.0.1:${port}/a\n`);
    await until(() => existsSync(output) && statSync(output).size > 0);
    child.kill('SIGINT');
    t.same(await once(child, 'close'), [1, null]);
    t.same(pathsOf(t, readFileSync(output, 'utf8')), ['/a']);
});

t.test('asks for names as SCANWIRE_RESOLVER says', async (t) => {
    const port = await served(t);
    const target = `localhost:${port}`;
    const asking = (resolver: string) =>
        scanwire(['records', 'capture', target], { env: { SCANWIRE_EGRESS_ALLOW: 'localhost', SCANWIRE_RESOLVER: resolver } });
    t.match(await asking('system'), { code: 0, stdout: /"host":"localhost"/ });
    t.match(await asking('nobody'), { code: 1, stdout: '', stderr: /^scanwire: .*SCANWIRE_RESOLVER must be one of \[dns, system\]/ });
});
