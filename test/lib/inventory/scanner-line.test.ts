import { createReadStream } from 'node:fs';
import fc from 'fast-check';
import t from 'tap';
import { ScanwireError } from '../../../lib/errors.ts';
import { readScan } from '../../../lib/inventory/read-scan.ts';
import { collect } from '../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

const read = (...lines: readonly string[]) => collect(readScan(bytes(lines.join('\n'))));

t.test('reads what masscan has written', async (t) => {
    const [open, closed] = [
        { port: 8000, proto: 'tcp', state: 'open' },
        { port: 22, proto: 'tcp', state: 'closed' },
    ];
    for (const name of ['masscan.json', 'masscan.ndjson']) {
        const hosts = await collect(readScan(createReadStream(new URL(`../../../../fixtures/scans/${name}`, import.meta.url))));
        const expected = [open, closed].map((service) => ({ address: '198.18.7.2', state: 'alive', services: [service] }));
        t.same(name === 'masscan.json' ? hosts.toReversed() : hosts, expected, name);
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

// As its writer `output.go` of 2026-11 prints it, and that of version 2.0.
t.test('reads the lines of naabu', async (t) => {
    const hosts = await read(
        '{"host":"web.example.test","ip":"192.0.2.1","timestamp":"2026-11-20T10:00:00.5Z","port":443,"protocol":"tcp","tls":true}',
        '{"ip":"192.0.2.2","timestamp":"2026-11-20T10:00:00.5Z","port":{"Port":53,"Protocol":1,"TLS":false},"protocol":"","tls":false}',
        '{"ip":"192.0.2.3","timestamp":"2026-11-20T10:00:00.5Z","port":53,"protocol":"udp","tls":false}',
    );
    t.same(hosts, [
        { address: '192.0.2.1', state: 'alive', name: 'web.example.test', services: [{ port: 443, proto: 'tcp', state: 'open' }] },
        { address: '192.0.2.2', state: 'alive', services: [{ port: 53, proto: 'tcp', state: 'open' }] },
        { address: '192.0.2.3', state: 'alive', services: [{ port: 53, proto: 'udp', state: 'open' }] },
    ]);
});

// Fields of `runner/types.go` of 2026-11; those that nobody reads are left out.
t.test('reads the lines of httpx', async (t) => {
    const hosts = await read(
        '{"port":"443","url":"https://web.example.test","input":"web.example.test","scheme":"https","webserver":"nginx","host":"192.0.2.1","a":["192.0.2.1"],"status_code":200,"failed":false}',
        '{"port":"8080","url":"http://[2001:db8::1]:8080","scheme":"http","host":"api.example.test","host_ip":"2001:db8::1","status_code":404,"failed":false}',
        '{"port":"80","url":"http://192.0.2.3","scheme":"http","host":"192.0.2.3","status_code":0,"failed":true}',
    );
    t.same(hosts, [
        {
            address: '192.0.2.1',
            state: 'alive',
            name: 'web.example.test',
            services: [{ port: 443, proto: 'tcp', state: 'open', name: 'ssl/http', info: 'nginx' }],
        },
        { address: '2001:db8::1', state: 'alive', services: [{ port: 8080, proto: 'tcp', state: 'open', name: 'http', info: null }] },
    ]);
});

t.test('reads the lines of zgrab2', async (t) => {
    const hosts = await read(
        '{"ip":"192.0.2.1","domain":"web.example.test","data":{"http":{"status":"success","protocol":"http","port":8080},"again":{"status":"success","protocol":"tls","port":443}}}',
        '{"ip":"192.0.2.2","data":{"ssh":{"status":"success","protocol":"ssh"}}}',
        '{"ip":"192.0.2.3","data":{"ssh":{"status":"connection-timeout","protocol":"ssh","port":22}}}',
    );
    t.same(hosts, [
        {
            address: '192.0.2.1',
            state: 'alive',
            name: 'web.example.test',
            services: [
                { port: 8080, proto: 'tcp', state: 'open', name: 'http', info: null },
                { port: 443, proto: 'tcp', state: 'open', name: 'ssl', info: null },
            ],
        },
        { address: '192.0.2.2', state: 'alive', services: [] },
    ]);
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
