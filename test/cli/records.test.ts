import { execFileSync, spawnSync } from 'node:child_process';
import { chmodSync, closeSync, existsSync, lstatSync, openSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import t from 'tap';
import { checkRecord, type HttpsRecord, stringifyRecord } from '../../lib/records/index.ts';
import { overwritten, text } from '../support/damaged-gzip.ts';
import { commandsInOneProcess } from '../support/scanwire.ts';
import { fixture } from '../support/served.ts';

const { run: scanwire, end } = commandsInOneProcess();
t.teardown(end);

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));
const OLD_STYLE = fixture('records/old-style.jsonl');
const SERVERS = fixture('records/servers.jsonl');
/** As the README of the fixtures counts them. */
const MENDS = { port_string: 4, vhost_null: 3, path_missing: 5, subject_parts: 5 };

function records(text: string): HttpsRecord[] {
    return text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line) as HttpsRecord);
}

t.test('mends an older file: records to stdout, the exact counts to stderr', async (t) => {
    const { code, stdout, stderr } = await scanwire(['records', 'mend', OLD_STYLE]);
    t.equal(code, 0);
    t.equal(records(stdout).length, 12);
    t.ok(records(stdout).every((record) => checkRecord(record).ok));
    t.equal(stderr, '12 good, 0 bad, 11 of the good ones mended: 4 port_string, 3 vhost_null, 5 path_missing, 5 subject_parts\n');
});

t.test('mends into a packed file, and says the report as JSON in both places', async (t) => {
    const folder = t.testdir({});
    const [output, report] = [`${folder}/mended.jsonl.gz`, `${folder}/report.json`];
    const ran = await scanwire(['records', 'mend', OLD_STYLE, '--output', output, '--report', report, '--json']);
    t.match({ ...ran, stdout: JSON.parse(ran.stdout) }, { code: 0, stdout: { good: 12, bad: 0, mended: 11, mends: MENDS }, stderr: '' });
    t.same(JSON.parse(readFileSync(report, 'utf8')), JSON.parse(ran.stdout));
    t.equal(records(gunzipSync(readFileSync(output)).toString()).length, 12);
    t.match(await scanwire(['records', 'check', output]), { code: 0, stdout: '12 good, 0 bad\n' });
    t.same(readdirSync(folder).toSorted(), ['mended.jsonl.gz', 'report.json']);
});

t.test('mends a file in its place', async (t) => {
    const file = `${t.testdir({ 'https.jsonl': readFileSync(OLD_STYLE) })}/https.jsonl`;
    t.equal((await scanwire(['records', 'mend', file, '--output', file])).code, 0);
    t.match(await scanwire(['records', 'check', file]), { code: 0, stdout: '12 good, 0 bad\n' });
});

t.test('writes through a link to the file behind it', async (t) => {
    const folder = t.testdir({ real: readFileSync(OLD_STYLE), link: t.fixture('symlink', 'real') });
    t.equal((await scanwire(['records', 'mend', `${folder}/link`, '--output', `${folder}/link`])).code, 0);
    t.ok(lstatSync(`${folder}/link`).isSymbolicLink());
    t.match(await scanwire(['records', 'check', `${folder}/real`]), { code: 0, stdout: '12 good, 0 bad\n' });
});

t.test('leaves the file that it reads as it is when lines of it are bad', async (t) => {
    const good = readFileSync(OLD_STYLE, 'utf8');
    for (const content of [`${good}hunter2\n`, gzipSync(good).subarray(0, -20), 'PK\x03\x04 a zip file', '[\n{}\n]\n']) {
        const folder = t.testdir({ 'https.jsonl': Buffer.from(content as string) });
        const file = `${folder}/https.jsonl`;
        const before = readFileSync(file);
        const { code, stdout } = await scanwire(['records', 'mend', file, '--output', file]);
        t.equal(code, 1);
        t.ok(stdout.endsWith(`\n${file} is left as it was: its bad lines would be lost, choose another file\n`), stdout);
        t.ok(readFileSync(file).equals(before));
        t.same(readdirSync(folder), ['https.jsonl']);
    }
});

t.test('leaves the file that stdin is read from as it is, too', async (t) => {
    const bad = `${readFileSync(OLD_STYLE, 'utf8')}hunter2\n`;
    const folder = t.testdir({ in: bad, link: t.fixture('link', 'in'), good: readFileSync(OLD_STYLE) });
    const mend = (from: string, ...more: string[]) => {
        const stdin = openSync(`${folder}/${from}`, 'r');
        const ran = spawnSync(process.execPath, [ENTRY, 'records', 'mend', '-', ...more], {
            stdio: [stdin, 'pipe', 'pipe'],
            encoding: 'utf8',
        });
        closeSync(stdin);
        return ran;
    };
    for (const output of ['in', 'link']) {
        const { status, stdout } = mend('in', '--output', `${folder}/${output}`);
        t.equal(status, 1);
        t.match(stdout, `\n${folder}/${output} is left as it was: its bad lines would be lost, choose another file\n`);
        t.equal(readFileSync(`${folder}/in`, 'utf8'), bad);
    }

    t.match(mend('in', '--output', `${folder}/new`, '--report', `${folder}/in`), { status: 1, stderr: /Cannot write the report to / });
    t.equal(readFileSync(`${folder}/in`, 'utf8'), bad);
    t.equal(mend('in', '--output', `${folder}/good`).status, 1, 'another file is written, bad lines or not');
    t.match(await scanwire(['records', 'check', `${folder}/good`]), { code: 0, stdout: '12 good, 0 bad\n' });
    t.same(readdirSync(folder).toSorted(), ['good', 'in', 'link']);
});

t.test('puts nothing in the place of a file when no line is good', async (t) => {
    const folder = t.testdir({ zip: 'PK\x03\x04 a zip file', kept: 'dear diary' });
    for (const output of ['kept', 'new']) {
        const { code, stdout } = await scanwire(['records', 'write', `${folder}/zip`, '--output', `${folder}/${output}`, '--json']);
        t.match({ code, ...JSON.parse(stdout) }, { code: 1, good: 0, bad: 1, written: false });
    }

    t.equal(readFileSync(`${folder}/kept`, 'utf8'), 'dear diary');
    t.same(readdirSync(folder), ['kept', 'zip']);
});

t.test('keeps a private file private', async (t) => {
    const file = `${t.testdir({ 'https.jsonl': readFileSync(OLD_STYLE) })}/https.jsonl`;
    for (const mode of [0o600, 0o666]) {
        chmodSync(file, mode);
        t.equal((await scanwire(['records', 'mend', file, '--output', file])).code, 0);
        t.equal(statSync(file).mode & 0o777, mode);
    }
});

t.test('writes no report where the records are', async (t) => {
    const folder = t.testdir({ in: readFileSync(OLD_STYLE), link: t.fixture('symlink', 'in') });
    for (const [input, report, output] of [
        ['in', 'in', 'out'],
        ['in', './link', 'out'],
        ['in', 'out', './out'],
    ] as const) {
        const args = ['mend', `${folder}/${input}`, '--report', `${folder}/${report}`, '--output', `${folder}/${output}`];
        const { code, stderr } = await scanwire(['records', ...args]);
        t.match({ code, stderr }, { code: 1, stderr: /^scanwire: Cannot write the report to .*: the records are there\n$/ });
    }

    t.same(readdirSync(folder), ['in', 'link']);
    t.ok(readFileSync(`${folder}/in`).equals(readFileSync(OLD_STYLE)));
});

t.test('writes into a pipe, and puts no file in its place', async (t) => {
    const pipe = `${t.testdir({})}/pipe`;
    execFileSync('mkfifo', [pipe]);
    const received = readFile(pipe, 'utf8');
    t.equal((await scanwire(['records', 'mend', OLD_STYLE, '--output', pipe])).code, 0);
    t.ok(lstatSync(pipe).isFIFO());
    t.equal(records(await received).length, 12);
});

t.test('leaves bad lines out, names them and leaves with 1', async (t) => {
    const input = `${readFileSync(OLD_STYLE, 'utf8')}{"port":"443"}\nhunter2\n`;
    const { code, stdout, stderr } = await scanwire(['records', 'mend', '-', '--profile', 'import'], { input });
    t.equal(code, 1);
    t.equal(records(stdout).length, 12);
    t.match(stderr, /^LINE +BYTE +FIELD +PROBLEM\n13 +\d+ +data +is required\n/);
    t.match(stderr, /\n14 +\d+ +is not valid JSON\n12 good, 2 bad/);
    t.notMatch(stderr, 'hunter2');
});

t.test('writes records in one form, whatever form they came in', async (t) => {
    const shuffled = records(readFileSync(SERVERS, 'utf8')).map((record) =>
        JSON.stringify(Object.fromEntries(Object.entries(record).reverse())),
    );
    const { code, stdout } = await scanwire(['records', 'write', '-'], { input: gzipSync(`\uFEFF${shuffled.join('\r\n\r\n')}`) });
    t.equal(code, 0);
    t.equal(stdout, readFileSync(SERVERS, 'utf8'));
    t.ok(records(stdout).every((record, index) => stringifyRecord(record) === stdout.split('\n')[index]));
});

t.test('reads each record into a line', async (t) => {
    const { code, stdout, stderr } = await scanwire(['records', 'read', SERVERS]);
    const lines = stdout.trimEnd().split('\n');
    t.match({ code, stderr }, { code: 0, stderr: '42 good, 0 bad\n' });
    t.equal(lines.length, 42);
    t.equal(lines[0], '200  https://web.example.test:8443/  127.0.0.2  nginx/1.22.1  "Example & Partners – Welcome"');
    t.match(lines[31], /^--- {2}https:\/\/api\.example\.test:8443\/not-http {2}127\.0\.0\.5 {2}not HTTP$/);
    t.match(lines[41], /\(truncated\)$/);
});

t.test('reads each record into a JSON object, with the body where it is asked for', async (t) => {
    const plain = (await scanwire(['records', 'read', SERVERS, '--json'])).stdout.trimEnd().split('\n');
    t.equal(plain.length, 42);
    t.notOk('body' in JSON.parse(plain[0] as string).response);
    const full = (await scanwire(['records', 'read', SERVERS, '--json', '--body'])).stdout.trimEnd().split('\n');
    t.match(JSON.parse(full[3] as string), {
        host: 'web.example.test',
        subject: { CN: 'web.example.test' },
        response: { http: true, status: 200, charset: 'windows-1251', title: 'Новости', truncated: false, body: /<title>Новости<\/title>/ },
    });
});

t.test('shows nothing of a hostile response that a terminal would act on', async (t) => {
    const response = 'HTTP/1.1 200 OK\r\nServer: \x1b[31mred\x9b1m\r\n\r\n<title>\x1b]0;owned\x07</title>\x1b[2J';
    const data = Buffer.from(response, 'latin1').toString('base64');
    const input = JSON.stringify({ data, host: 'a.example', ip: '192.0.2.1', port: 443, path: '/\u001b[2J\u009b2J' });
    for (const args of [[], ['--body'], ['--json', '--body']]) {
        const { stdout } = await scanwire(['records', 'read', '-', ...args], { input });
        t.notMatch(stdout.replaceAll('\n', ''), /\p{Cc}/u);
        t.match(stdout, /owned/);
    }

    const { stdout } = await scanwire(['records', 'read', '-', '--json'], { input });
    t.equal(JSON.parse(stdout).path, '/\u001b[2J\u009b2J');
});

t.test('reads what is whole of a packed file that was cut off', async (t) => {
    const packed = gzipSync(readFileSync(SERVERS));
    const { code, stdout, stderr } = await scanwire(['records', 'read', '-'], { input: packed.subarray(0, packed.length >> 1) });
    t.equal(code, 1);
    t.ok(stdout.split('\n').length > 10);
    t.match(stderr, /is where reading ends: The gzip file is damaged or was cut off/);
});

t.test('prints the schema', async (t) => {
    t.match(JSON.parse((await scanwire(['records', 'schema'])).stdout), { $id: 'urn:scanwire:https-record:1' });
});

t.test('says why stdin cannot be read', (t) => {
    const folder = t.testdir({});
    for (const [stdin, reason] of [
        [openSync(folder, 'r'), 'it is a folder'],
        [openSync(`${folder}/written`, 'w'), 'EBADF'],
    ] as const) {
        const { status, stdout, stderr } = spawnSync(process.execPath, [ENTRY, 'records', 'check', '-'], {
            stdio: [stdin, 'pipe', 'pipe'],
        });
        closeSync(stdin);
        t.same([status, String(stdout), String(stderr)], [1, '', `scanwire: Cannot read stdin: ${reason} (file)\n`]);
    }

    t.end();
});

t.test('says so when stdout takes no more', async (t) => {
    const full = openSync('/dev/full', 'w');
    const { status, stderr } = spawnSync(process.execPath, [ENTRY, 'records', 'write', SERVERS], { stdio: ['ignore', full, 'pipe'] });
    closeSync(full);
    t.equal(status, 1);
    t.equal(String(stderr), 'scanwire: Cannot write to stdout: ENOSPC\n');
});

t.test('reads lines as long as it is told to', async (t) => {
    const [first = ''] = readFileSync(SERVERS, 'utf8').split('\n');
    const input = `${JSON.stringify({ ...JSON.parse(first), data: 'A'.repeat(1_500_000) })}\n${first}\n`;
    for (const command of ['check', 'mend', 'read', 'write']) {
        const refused = await scanwire(['records', command, '-'], { input });
        t.match({ ...refused, text: refused.stdout + refused.stderr }, { code: 1, text: /is longer than 1048576 bytes\n1 good, 1 bad/ });
        const ran = await scanwire(['records', command, '-', '--max-line-bytes', '2000000'], { input });
        t.match({ code: ran.code, report: ran.stdout + ran.stderr }, { code: 0, report: /2 good, 0 bad/ }, command);
    }

    t.match(await scanwire(['records', 'check', '-', '--max-line-bytes', '0'], { input }), { code: 2 });
});

t.test('names only the kinds of mends that there were', async (t) => {
    const [, , good = ''] = readFileSync(SERVERS, 'utf8').split('\n');
    t.equal((await scanwire(['records', 'mend', '-'], { input: good })).stderr, '1 good, 0 bad, 0 of the good ones mended\n');
    const { stderr } = await scanwire(['records', 'mend', '-'], { input: good.replace('"port":8443', '"port":"8443"') });
    t.equal(stderr, '1 good, 0 bad, 1 of the good ones mended: 1 port_string\n');
});

t.test('refuses a report that it cannot write before it reads anything', async (t) => {
    const folder = t.testdir({});
    for (const [report, reason] of [
        [folder, 'it is a folder'],
        [`${folder}/none/report.json`, 'there is no such folder'],
    ] as const) {
        const output = `${folder}/out.jsonl`;
        const ran = await scanwire(['records', 'write', SERVERS, '--output', output, '--report', report]);
        t.match(ran, { code: 1, stdout: '', stderr: `scanwire: Cannot write ${report}: ${reason}\n` });
        t.notOk(existsSync(output));
    }
});

t.test('refuses an output that it cannot write, and leaves nothing behind', async (t) => {
    const folder = t.testdir({ file: '' });
    for (const output of [`${folder}/none/out.jsonl`, `${folder}/file/out.jsonl`, folder]) {
        const { code, stderr } = await scanwire(['records', 'write', SERVERS, '--output', output]);
        t.equal(code, 1);
        t.match(stderr, /^scanwire: Cannot write .*\n$/);
        t.same(readdirSync(folder), ['file']);
    }

    writeFileSync(`${folder}/cut.gz`, gzipSync('x').subarray(0, 12));
    t.match(await scanwire(['records', 'write', `${folder}/cut.gz`, '--output', `${folder}/out.jsonl`]), { code: 1 });
});

t.test('reads as much of a file that is damaged far behind as of the same bytes from stdin', async (t) => {
    const packed = gzipSync(text(3500));
    const damaged = overwritten(packed, packed.length - 200_000, 100_000);
    const file = `${t.testdir()}/damaged.gz`;
    writeFileSync(file, damaged);
    const fromFile = await scanwire(['records', 'check', file, '--json']);
    const fromStdin = await scanwire(['records', 'check', '-', '--json'], { input: damaged });
    t.match(fromFile.stdout, /damaged or was cut off/);
    t.equal(fromFile.stdout, fromStdin.stdout);
});
