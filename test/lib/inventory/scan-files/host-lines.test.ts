import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import fc from 'fast-check';
import t from 'tap';
import { ScanwireError } from '../../../../lib/errors.ts';
import { readScan } from '../../../../lib/inventory/scan-files/read-scan.ts';
import { collect } from '../../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

const read = (...lines: readonly string[]) => collect(readScan(bytes(lines.join('\n'))));
const FIXTURES = new URL('../../../../../fixtures/scans/', import.meta.url);
const fixture = (name: string) => collect(readScan(createReadStream(new URL(name, FIXTURES))));

t.test('reads what masscan has written', async (t) => {
    const [open, closed] = [
        { port: 8000, proto: 'tcp', state: 'open' },
        { port: 22, proto: 'tcp', state: 'closed' },
    ];
    for (const name of ['masscan.json', 'masscan.ndjson']) {
        const hosts = await fixture(name);
        const expected = [open, closed].map((service) => ({ address: '198.18.7.2', state: 'alive', services: [service] }));
        t.same(name === 'masscan.json' ? hosts.toReversed() : hosts, expected, name);
    }
});

t.test('reads the banners of masscan alike from XML and JSON', async (t) => {
    const service = { port: 80, proto: 'tcp', state: 'open' };
    const banner = [
        'HTTP/1.0 200 OK',
        'Server: SimpleHTTP/0.6 Python/3.11.7',
        'Date: Thu, 26 Nov 2026 01:37:09 GMT',
        'Content-type: text/html; charset=utf-8',
        'Content-Length: 735',
        '',
        '',
    ].join('\r\n');
    // The last line break is cut, after its first half.
    const http = { ...service, name: 'http', info: banner.slice(0, -1) };
    for (const name of ['masscan.xml', 'masscan-banners.json']) {
        const expected = [service, service, service, http].map((one) => ({ address: '198.18.9.2', state: 'alive', services: [one] }));
        t.same(await fixture(name), expected, name);
    }
});

// As its writer `out-json.c` of 2026-11 prints it.
t.test('reads the list of masscan, a finding a line', async (t) => {
    const hosts = await read(
        '[',
        '{   "ip": "192.0.2.1",   "timestamp": "1763900000", "ports": [ {"port": 443, "proto": "tcp", "status": "open", "reason": "syn-ack", "ttl": 64} ] }',
        ',',
        '{   "ip": "192.0.2.1",   "timestamp": "1763900001", "ports": [ {"port": 443, "proto": "tcp", "service": {"name": "ssh", "banner": "SSH-2.0-OpenSSH_9.2"} } ] }',
        ',',
        '{   "ip": "192.0.2.1",   "timestamp": "1763900001", "ports": [ {"port": 443, "proto": "tcp", "service": {"name": "title", "banner": "Home"} } ] }',
        ',',
        '{   "ip": "192.0.2.2",   "timestamp": "1763900002", "ports": [ {"port": 23, "proto": "tcp", "status": "closed", "reason": "rst-ack", "ttl": 64} ] }',
        ',',
        '{   "ip": "192.0.2.3",   "timestamp": "1763900003", "ports": [ {"port": 0, "proto": "icmp", "status": "open", "reason": "none", "ttl": 64} ] }',
        ']',
        '',
    );
    t.same(hosts, [
        { address: '192.0.2.1', state: 'alive', services: [{ port: 443, proto: 'tcp', state: 'open' }] },
        {
            address: '192.0.2.1',
            state: 'alive',
            services: [{ port: 443, proto: 'tcp', state: 'open', name: 'ssh', info: 'SSH-2.0-OpenSSH_9.2' }],
        },
        { address: '192.0.2.1', state: 'alive', services: [{ port: 443, proto: 'tcp', state: 'open' }] },
        { address: '192.0.2.2', state: 'alive', services: [{ port: 23, proto: 'tcp', state: 'closed' }] },
        { address: '192.0.2.3', state: 'alive', services: [] },
    ]);
});

// As its writer `out-ndjson.c` of 2026-11 prints it.
t.test('reads the lines of masscan', async (t) => {
    const hosts = await read(
        '{"ip":"192.0.2.1","timestamp":"1763900000","port":53,"proto":"udp","rec_type":"status","data":{"status":"open","reason":"none","ttl":64}}',
        '{"ip":"2001:db8::1","timestamp":"1763900000","port":22,"proto":"tcp","rec_type":"banner","data":{"service_name":"ssh","banner":""}}',
        '{"ip":"192.0.2.1","timestamp":"1763900000","port":1,"proto":"tcp","rec_type":"of tomorrow"}',
    );
    t.same(hosts, [
        { address: '192.0.2.1', state: 'alive', services: [{ port: 53, proto: 'udp', state: 'open' }] },
        { address: '2001:db8::1', state: 'alive', services: [{ port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null }] },
        { address: '192.0.2.1', state: 'alive', services: [{ port: 1, proto: 'tcp', state: 'open' }] },
    ]);
});

// Sources and dates of these three are in `fixtures/scans/README.md`.
t.test('reads what naabu writes, with the services that it was asked for', async (t) => {
    t.same(await fixture('naabu.jsonl'), [
        { address: '192.0.2.41', state: 'alive', services: [{ port: 443, proto: 'tcp', state: 'open' }] },
        { address: '192.0.2.41', state: 'alive', name: 'web.example.test', services: [{ port: 80, proto: 'tcp', state: 'open' }] },
        { address: '192.0.2.42', state: 'alive', services: [{ port: 53, proto: 'udp', state: 'open' }] },
        {
            address: '192.0.2.43',
            state: 'alive',
            name: 'mail.example.test',
            mac: '00:16:3e:5a:21:43',
            os_name: 'Linux',
            services: [{ port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: 'OpenSSH 9.2p1 (protocol 2.0)' }],
        },
        {
            address: '192.0.2.43',
            state: 'alive',
            name: 'mail.example.test',
            services: [{ port: 993, proto: 'tcp', state: 'open', name: 'ssl/imap', info: 'Dovecot imapd' }],
        },
        { address: '192.0.2.44', state: 'alive', mac: '00:16:3e:5a:21:44', services: [] },
        { address: '2001:db8::44', state: 'alive', services: [{ port: 8443, proto: 'tcp', state: 'open' }] },
    ]);
});

t.test('reads what httpx writes, and has written', async (t) => {
    t.same(await fixture('httpx.jsonl'), [
        {
            address: '2001:db8::51',
            state: 'alive',
            name: 'web.example.test',
            services: [{ port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: null }],
        },
        {
            address: '192.0.2.52',
            state: 'alive',
            name: 'api.example.test',
            services: [{ port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: 'cloudflare' }],
        },
        {
            address: '192.0.2.53',
            state: 'alive',
            name: 'old.example.test',
            services: [{ port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: 'cloudflare' }],
        },
        {
            address: '192.0.2.52',
            state: 'alive',
            name: 'api.example.test',
            services: [{ port: 8080, proto: 'tcp', state: 'open', name: 'http', info: null }],
        },
    ]);
    const v6 = '{"port":"8080","url":"http://[2001:db8::1]:8080","scheme":"http","host":"2001:db8::1","status_code":404,"failed":false}';
    t.match(await read(v6), [{ address: '2001:db8::1', name: undefined }], 'an address is no name');
});

t.test('reads what zgrab2 writes: over UDP, on several ports, of nobody, and without ports', async (t) => {
    t.same(await fixture('zgrab2.jsonl'), [
        {
            address: '192.0.2.61',
            state: 'alive',
            name: 'time.example.test',
            services: [{ port: 123, proto: 'udp', state: 'open', name: 'ntp', info: null }],
        },
        {
            address: '192.0.2.62',
            state: 'alive',
            name: 'web.example.test',
            services: [
                { port: 8443, proto: 'tcp', state: 'open', name: 'http', info: null },
                { port: 443, proto: 'tcp', state: 'open', name: 'ssl', info: null },
            ],
        },
        { address: '192.0.2.64', state: 'alive', name: 'old.example.test', services: [] },
    ]);
    t.same(await read('{"ip":"192.0.2.65","port":22,"data":null,"error":"no answer"}'), [], 'an error is no open port');
});

t.test('reads the list of masscan until 2017, whose last line is no JSON', async (t) => {
    const finding =
        '{   "ip": "192.0.2.1",   "timestamp": "1480000000", "ports": [ {"port": 80, "proto": "tcp", "status": "open", "reason": "syn-ack", "ttl": 57} ] },';
    t.match(await read(finding, '{finished: 1}', ''), [{ address: '192.0.2.1', services: [{ port: 80 }] }]);
});

t.test('refuses a list that was cut off, wherever that was', async (t) => {
    const file = await readFile(new URL('masscan.json', FIXTURES), 'utf8');
    const lines = file.trimEnd().split('\n');
    t.equal((await read(...lines)).length, 2);
    for (let length = 1; length < lines.length; length += 1) {
        const { code, message } = await refusal(readScan(bytes(lines.slice(0, length).join('\n'))));
        t.strictSame([code, message], ['INVALID_INPUT', 'Line 1 begins a list that has no end: the file was cut off']);
    }

    const [one, two] = ['{"address":"192.0.2.1"}', '{"address":"192.0.2.2"}'];
    t.equal((await read(`[${one},`, `${two}]`, `[${one}]`)).length, 3, 'lists one after the other');
    t.match((await refusal(readScan(bytes(`[${one}]\n[${two},\n`)))).message, /^Line 2 begins/);
    t.equal((await read('[', one, ',', '{finished: 1}')).length, 1);
});

t.test('names line and field of what cannot be', async (t) => {
    const cases: [string, RegExp, string][] = [
        ['{"ip":"nowhere","ports":[]}', /^Line 1: .*address/, 'address'],
        ['{"ip":"192.0.2.1","port":70000}', /^Line 1: .*port/, 'services[0].port'],
        ['{"ip":"192.0.2.1","ports":[{"port":"x","proto":"tcp"}]}', /^Line 1: .*port/, 'services[0].port'],
        ['{"ip":"192.0.2.1","port":80,"protocol":"sctp"}', /^Line 1: .*proto/, 'services[0].proto'],
        ['{"url":"http://x","status_code":200,"host":"x","port":"80"}', /^Line 1: .*address/, 'address'],
        ['{"domain":"x","data":{"http":{"status":"success","port":80}}}', /^Line 1: .*address/, 'address'],
    ];
    for (const [line, message, field] of cases) {
        const error = await refusal(readScan(bytes(line)));
        t.match(error.message, message, line);
        t.equal(error.field, field, line);
    }
});

t.test('refuses a port that cannot even be made a number of', async (t) => {
    const line = { url: 'http://192.0.2.1', host: '192.0.2.1', status_code: 200, port: { toString: {} } };
    await t.rejects(read(JSON.stringify(line)), { name: 'ScanwireError', code: 'INVALID_INPUT', message: /services\[0\]\.port/ });
});

t.test('throws nothing but refusals', async () => {
    const value = fc.oneof(fc.jsonValue(), fc.constantFrom('192.0.2.1', 'http://[', 80, 'tcp', 'success'));
    const keys = [
        'ip',
        'ports',
        'port',
        'proto',
        'protocol',
        'rec_type',
        'data',
        'url',
        'status_code',
        'host',
        'host_ip',
        'a',
        'error',
        'name',
        'domain',
        'scheme',
    ];
    const line = fc.record(Object.fromEntries(keys.map((key) => [key, value])), { requiredKeys: [] });
    await fc.assert(
        fc.asyncProperty(line, async (one) => {
            await read(JSON.stringify(one)).catch((error: unknown) => {
                if (!(error instanceof ScanwireError)) {
                    throw error;
                }
            });
        }),
        { numRuns: 500 },
    );
});
