import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { newLicenseKeyPair } from '../../lib/license/index.ts';
import { type Ran, type Run, scanwire, scanwireEach } from '../support/scanwire.ts';
import { HUSH } from './refusal.ts';

/* What an operator can get wrong at the command line, in its environment and its files: each ends the command before anything is made. */

type Env = Readonly<Record<string, string>>;
type Row = readonly [args: string, names: string, rule: RegExp, env?: Env];

const [SERVE, WORKER] = ['serve --port 0', 'worker --collector edge'];
const ring = (keys: unknown, current = 'k1'): Env => ({ SCANWIRE_KEY_RING: JSON.stringify({ current, keys }) });
const KEY = Buffer.alloc(32).toString('base64');
const NOWHERE = `postgres://u:${HUSH}@127.0.0.1:1/x`;

const USAGE: readonly Row[] = [
    ['serve --port abc', '--port', /must be a whole number from 0 to 65535/],
    ['serve --port 70000', '--port', /must be a whole number from 0 to 65535/],
    [`${SERVE} --hsts -1`, '--hsts', /must be a whole number from 0 to 63072000/],
    [`${SERVE} --max-connections 0`, '--max-connections', /must be a whole number from 1 to 1000000/],
    [`${SERVE} --max-connections 10 --max-per-address 11`, '--max-per-address', /must not exceed --max-connections/],
    [`${SERVE} --max-without-request 0`, '--max-without-request', /must be a whole number from 1 to 1000000/],
    [`${SERVE} --max-per-address none`, '--max-per-address', /must be a whole number from 1 to 1000000/],
    [`${SERVE} --max-requests 0`, '--max-requests', /must be a whole number from 1 to 1000000/],
    [`${SERVE} --max-streams 0`, '--max-streams', /must be a whole number from 1 to 10000/],
    [`${SERVE} --openapi none`, '--openapi', /Allowed choices are public, off/],
    [`${SERVE} --metasploit-port 0`, '--metasploit-port', /must be a whole number from 1 to 65535/],
    [`${SERVE} --vendor Acme_Corp`, '--vendor', /must be 1 to 40 letters and digits, with single dashes between them/],
    [`${SERVE} --keep-for 3`, '--keep-for', /must be forever, or a span of at least 24 h/],
    [`${SERVE} --keep-for 1h`, '--keep-for', /must be forever, or a span of at least 24 h/],
    [`${SERVE} --metrics here`, '--metrics', /must be a port, or an address and a port/],
    [`${SERVE} --drain-timeout 0`, '--drain-timeout', /must be a whole number from 1 to/],
    [`${SERVE} --max-conections 5`, '--max-conections', /unknown option/],
    ['serv', 'serv', /unknown command/],
    ['worker', '--collector', /not specified|required/],
    [`${WORKER} --concurrency 0`, '--concurrency', /must be a whole number from 1 to 5000/],
    ['keys create one --expires yesterday', '--expires', /must be a span such as/],
    ['listen --port x', '--port', /must be a whole number from 0 to 65535/],
];

const SERVING: readonly Row[] = [
    [`${SERVE} --host no.such.host.invalid`, '--host', /no\.such\.host\.invalid/],
    [`${SERVE} --host 192.0.2.1`, '--host', /192\.0\.2\.1/],
    [`${SERVE} --tls-cert FOLDER/pem`, '--tls-key', /must be given|together|missing/],
    [`${SERVE} --tls-cert FOLDER/missing --tls-key FOLDER/pem`, '--tls-cert', /Cannot read the file of --tls-cert: ENOENT/],
    [`${SERVE} --tls-cert FOLDER/pem --tls-key-env NO_SUCH`, '--tls-key-env', /There is nothing in NO_SUCH/],
    [
        `${SERVE} --tls-key - --scan-database-file -`,
        '--scan-database-file',
        /Only one of --tls-key and --scan-database-file can be read from stdin/,
    ],
    [`${SERVE} --tls-cert FOLDER/hush --tls-key FOLDER/hush`, 'tls-cert', /certificate|PEM/],
    [`${SERVE} --scan-database-file FOLDER/missing`, 'missing', /no such file|cannot be read/i],
    [`${SERVE} --scan-database-file FOLDER/hush`, 'scan-database-file', /postgres:\/\//],
    [`${SERVE} --scan-database-file FOLDER/nowhere`, 'scan-database-file', /cannot be used now: nothing listens at its address/],
    [SERVE, 'DATABASE_URL', /must be a URL that begins with postgres:\/\//, { DATABASE_URL: `mysql://u:${HUSH}@127.0.0.1/x` }],
    [SERVE, 'DATABASE_URL', /must be a URL that begins with postgres:\/\//, { DATABASE_URL: HUSH }],
    [SERVE, 'DATABASE_URL', /must be percent-encoded/, { DATABASE_URL: `postgres://u:${HUSH}#/x@127.0.0.1/x` }],
    [SERVE, 'DATABASE_URL', /file that cannot be read: .*missing/, { DATABASE_URL: 'postgres://u@127.0.0.1/x?sslrootcert=/missing' }],
    [SERVE, 'database', /cannot be used now: nothing listens at its address/, { DATABASE_URL: NOWHERE }],
    [SERVE, 'REDIS_URL', /must be a URL that begins with/, { REDIS_URL: `http://u:${HUSH}@127.0.0.1` }],
    [SERVE, 'REDIS_URL', /must/, { REDIS_URL: `redis://:${HUSH}@127.0.0.1:port` }],
    [SERVE, 'SCANWIRE_KEY_RING', /is not valid JSON/, { SCANWIRE_KEY_RING: HUSH }],
    [
        SERVE,
        'SCANWIRE_KEY_RING',
        /must have the form \{"current": id, "keys": \{id: base64\}\}/,
        { SCANWIRE_KEY_RING: `{"key":"${HUSH}"}` },
    ],
    [SERVE, 'SCANWIRE_KEY_RING', /has a key that is not 32 bytes in base64/, ring({ k1: HUSH })],
    [SERVE, 'SCANWIRE_KEY_RING', /the current key must be in the key ring/, ring({ k2: KEY })],
    [SERVE, 'SCANWIRE_KEY_RING', /has an id with other characters than/, ring({ 'k 1': KEY }, 'k 1')],
    [
        SERVE,
        'SCANWIRE_EGRESS_ALLOW',
        /is a URL: write its host name, or its address/,
        { SCANWIRE_EGRESS_ALLOW: '10.0.0.0/8,http://127.0.0.1' },
    ],
    [SERVE, 'SCANWIRE_EGRESS_ALLOW', /is not a CIDR block/, { SCANWIRE_EGRESS_ALLOW: '10.0.0.0/64' }],
    [SERVE, 'SCANWIRE_RESOLVER', /must be one of \[dns, system\]/, { SCANWIRE_RESOLVER: 'google' }],
];

const FOLDERS: readonly Row[] = [
    [`${SERVE} --data FOLDER/file`, 'FOLDER/file', /is a file: name a folder with --data/],
    [`${SERVE} --data FOLDER/open`, 'FOLDER/open', /0755.*chmod 700|mode/],
    [`${SERVE} --data FOLDER/link`, 'FOLDER/link', /link/],
    [`${SERVE} --data FOLDER/foreign`, 'FOLDER/foreign', /holds something else: name an empty or a new folder with --data/],
    [`${SERVE} --data FOLDER/broken`, 'key-ring.json', /has a key that is not 32 bytes in base64/],
    ['keys list --data FOLDER/nothing', '--data', /There is no data folder/],
];

const OTHERS: readonly Row[] = [
    [WORKER, 'DATABASE_URL', /is not set/],
    [WORKER, 'SCANWIRE_KEY_RING', /No key ring/, { DATABASE_URL: NOWHERE }],
    [WORKER, 'database', /cannot be used now: nothing listens at its address/, { DATABASE_URL: NOWHERE, ...ring({ k1: KEY }) }],
    [`${WORKER} --config FOLDER/missing.mjs`, '(config)', /Cannot load .*missing\.mjs/],
    [`${WORKER} --config FOLDER/nothing.mjs`, 'default export', /must be the options of the host/],
    ['backup FOLDER/copy', '--data', /There is no data folder/],
    ['exporters create --url https://a.example.com --secret-env NO_SUCH', '--secret-env', /There is nothing in NO_SUCH/],
    ['exporters create --url https://a.example.com --oauth FOLDER/hush', '--oauth', /must be valid JSON/],
    ['exporters create --url https://a.example.com --client-key-env A --client-key FOLDER/pem', '--client-key-env', /only one of them/],
    ['exporters create --url https://a.example.com --secret-file FOLDER/missing', 'missing', /no such file|cannot be read/i],
    ['exporters create --url https://a.example.com --secret-env A --secret-file FOLDER/hush', '--secret-env', /only one of them/],
    ['exporters create --url https://a.example.com --client-cert FOLDER/pem', '--client-key', /together/],
    ['license trust FOLDER/hush', 'key', /must be an Ed25519 public key in PEM form/],
    ['license install FOLDER/hush', 'licence', /was not installed/],
    ['keys create one --scope everything', 'scope', /inventory:read/],
    ['restore FOLDER/hush', 'hush', /is no whole backup/],
];

/** What the rows name, below one folder. */
function filesFor(t: Test): string {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-wrong-'));
    t.teardown(() => rmSync(folder, { recursive: true }));
    writeFileSync(join(folder, 'hush'), HUSH);
    writeFileSync(join(folder, 'pem'), newLicenseKeyPair().privateKey);
    writeFileSync(join(folder, 'nowhere'), NOWHERE);
    writeFileSync(join(folder, 'file'), '');
    writeFileSync(join(folder, 'nothing.mjs'), 'export const options = {};');
    for (const name of ['open', 'private', 'foreign', 'broken']) {
        mkdirSync(join(folder, name), { mode: 0o700 });
    }
    writeFileSync(join(folder, 'open', 'key-ring.json'), JSON.stringify({ current: 'k1', keys: { k1: KEY } }));
    chmodSync(join(folder, 'open'), 0o755);
    symlinkSync(join(folder, 'private'), join(folder, 'link'));
    writeFileSync(join(folder, 'foreign', 'package.json'), '{}');
    writeFileSync(join(folder, 'broken', 'key-ring.json'), JSON.stringify({ current: 'k1', keys: { k1: HUSH } }));
    return folder;
}

/** The first in a process of its own, as a shell starts it; the others one after the other in one. */
async function refusesAll(t: Test, table: readonly Row[]): Promise<void> {
    const folder = filesFor(t);
    const runs = table.map((row, index) => runOf(row, folder, index));
    const [first, ...others] = runs as [Run, ...Run[]];
    const ran = [await scanwire(first.args, first), ...(await scanwireEach(others))];
    t.equal(ran.length, table.length);
    for (const [index, row] of table.entries()) {
        refused(t, row, ran[index] as Ran, { folder, index });
    }
}

function runOf([line, , , env = {}]: Row, folder: string, index: number): Run {
    const data = line.includes('--data') ? [] : ['--data', join(folder, `data-${index}`)];
    return { args: [...line.replaceAll('FOLDER', folder).split(' '), ...data], env, cwd: folder };
}

function refused(
    t: Test,
    [line, names, rule, env = {}]: Row,
    { code, stdout, stderr }: Ran,
    { folder, index }: { readonly folder: string; readonly index: number },
): void {
    const title = `${line} ${Object.keys(env).join(' ')}: ${names} ${rule.source}`;
    t.match(String(code), /^[12]$/, title, { stdout, stderr });
    t.ok(stderr.includes(names.replaceAll('FOLDER', folder)), `${title} is named`, { stderr });
    t.match(stderr, rule, `${title} has its rule`);
    t.notMatch(stdout + stderr, HUSH, `${title} keeps secrets`);
    t.notMatch(stderr, /^ {4}at /m, `${title} has no stack`);
    // A licence is held against what the folder trusts, which is there once all is.
    t.equal(existsSync(join(folder, `data-${index}`, 'database')), line.startsWith('license '), `${title} makes no database`);
}

for (const [name, table] of Object.entries({ USAGE, SERVING, FOLDERS, OTHERS })) {
    t.test(`refuses ${table.length} wrong configurations: ${name}`, (t) => refusesAll(t, table));
}
