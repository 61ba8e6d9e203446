import { once } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { stringifyRecord } from '../../lib/records/index.ts';
import { certificate } from '../support/certificates.ts';
import { scanwire } from '../support/scanwire.ts';
import { atTerminal, withoutTerminal } from '../support/terminal.ts';

/*
 * Names and certificates are what strangers write: what a terminal acts on is shown escaped, and kept in files as it is.
 */

/** Turns the direction round, and what follows a C1 control is a title of the window. */
const HOSTILE = 'a\u202etxt.exe\u2066\u009d0;owned\u2028\u007f';
const RAW = /[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const RECORD = { data: 'SFRUUC8xLjEgMjAwIE9LDQoNCg==', host: 'www.example.com', ip: '192.0.2.1', port: 443, subject: { CN: HOSTILE } };
const LINE = `${stringifyRecord(RECORD)}\n`;

for (const command of ['write', 'mend']) {
    t.test(`records ${command}: shows no sign that a terminal acts on, and keeps each in a file`, { skip: withoutTerminal }, async (t) => {
        const folder = t.testdir({ 'in.jsonl': LINE });
        const file = join(folder, 'in.jsonl');
        const seen = await atTerminal(`records ${command} '${file}' 2>/dev/null`);
        t.notMatch(seen, RAW);
        t.match(JSON.parse(seen), { subject: { CN: HOSTILE } }, 'escaped, and no less there');

        const asJson = await scanwire(['records', command, file, '--json']);
        t.notMatch(asJson.stdout, RAW);
        t.match(JSON.parse(asJson.stdout), { subject: { CN: HOSTILE } });

        t.match((await scanwire(['records', command, file])).stdout, HOSTILE, 'a pipe leads to a file');
        await atTerminal(`records ${command} '${file}' --output '${folder}/out.jsonl'`);
        t.match(readFileSync(join(folder, 'out.jsonl'), 'utf8'), HOSTILE);
        t.match(
            await atTerminal(`records ${command} '${file}' --gzip`),
            /Cannot write packed records to a terminal: name a file by --output/,
        );
    });
}

t.test('records check --report: a report of hostile lines is safe to print, and says the same', async (t) => {
    const folder = t.testdir({ 'in.jsonl': `${JSON.stringify({ ...RECORD, [HOSTILE]: 1 })}\n` });
    const report = join(folder, 'report.json');
    const { stdout } = await scanwire(['records', 'check', join(folder, 'in.jsonl'), '--json', '--report', report]);
    const written = readFileSync(report, 'utf8');
    t.notMatch(written, RAW);
    t.same(JSON.parse(written), JSON.parse(stdout));
    t.match(JSON.stringify(JSON.parse(written)), 'txt.exe');
    t.match(written, /^\{\n {4}"/, 'laid out for people');
});

t.test('records capture: shows no sign of a certificate that a terminal acts on', { skip: withoutTerminal }, async (t) => {
    const shown = 'a\u202etxt.exe';
    const server = createServer(await certificate({ name: shown, withoutAlternativeName: true }), (_, response) => void response.end());
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const target = `127.0.0.1:${(server.address() as AddressInfo).port}`;
    const env = { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
    const seen = await atTerminal(`records capture ${target} 2>/dev/null`, env);
    t.notMatch(seen, RAW);
    t.match(JSON.parse(seen), { subject: { CN: shown } });
    const asJson = await scanwire(['records', 'capture', target, '--json'], { env });
    t.notMatch(asJson.stdout, RAW);
    t.match(JSON.parse(asJson.stdout), { subject: { CN: shown } });
    t.match((await scanwire(['records', 'capture', target], { env })).stdout, shown);
});

t.test('export: shows no sign that a terminal acts on, and keeps each in a file', { skip: withoutTerminal }, async (t) => {
    const folder = t.testdir({});
    const [data, scan, out] = ['data', 'scan.jsonl', 'out.jsonl'].map((name) => join(folder, name)) as [string, string, string];
    writeFileSync(scan, `${JSON.stringify({ address: '192.0.2.1', name: 'txt\u202eexe.\u2066x' })}\n`);
    t.match(await scanwire(['import', scan, '--data', data]), { code: 0 });
    const seen = await atTerminal(`export --data '${data}'`);
    t.match(seen, /192\.0\.2\.1/);
    t.match(seen, /txt\uFFFDexe/);
    t.notMatch(seen, RAW);
    await atTerminal(`export --data '${data}' --output '${out}'`);
    t.match(readFileSync(out, 'utf8'), 'txt\u202eexe.\u2066x');
});
