import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import { MAX_HOST_LINE, readHostLines } from '../../../../lib/inventory/scan-files/host-lines.ts';
import { readScan } from '../../../../lib/inventory/scan-files/read-scan.ts';
import { collect } from '../../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

const fixture = (name: string): URL => new URL(`../../../../../fixtures/scans/${name}`, import.meta.url);

t.test('tells nmap XML and JSON lines apart', async (t) => {
    t.equal((await collect(readScan(createReadStream(fixture('services.xml'))))).length, 5);
    t.equal((await collect(readScan(createReadStream(fixture('hosts.jsonl'))))).length, 5);
});

t.test('accepts both packed with gzip, and chunks of any size', async (t) => {
    for (const name of ['services.xml', 'hosts.jsonl']) {
        const file = await readFile(fixture(name));
        const packed = gzipSync(file);
        const singly = Array.from(packed, (_, index) => packed.subarray(index, index + 1));
        t.same(await collect(readScan(bytes(...singly))), await collect(readScan(bytes(file))), name);
    }
});

t.test('looks past blank lines and a byte order mark', async (t) => {
    t.match(await collect(readScan(bytes('\uFEFF\n \r\n{"address":"192.0.2.1"}'))), [{ address: '192.0.2.1' }]);
});

t.test('refuses what is neither', async (t) => {
    const cases: [string | Uint8Array, RegExp][] = [
        ['', /^Line 1: the file is empty$/],
        [' \n\n ', /^Line 1: the file is empty$/],
        ['[{"address":"192.0.2.1"},{"address":"192.0.2.2"}]', /^Line 1 is not valid JSON: write one host, a JSON object, on each line$/],
        ['address,name\n', /^Line 1: neither the XML of nmap, Metasploit or Nessus nor JSON lines/],
        [Buffer.from('\uFEFF<nmaprun/>', 'utf16le'), /^Line 1: this is UTF-16 text/],
        [gzipSync(gzipSync('{}')), /^Line 1: neither/],
        [gzipSync('{"address":"192.0.2.1"}\n').subarray(0, -6), /^The gzip file is damaged or was cut off$/],
        [' '.repeat(200_000), /^Line 1: the file is empty$/],
    ];
    for (const [content, message] of cases) {
        const error = await refusal(readScan(bytes(content)));
        t.equal(error.code, 'INVALID_INPUT');
        t.match(error.message, message);
    }
});

t.test('stops at a gzip file that expands without end', async (t) => {
    const block = gzipSync(Buffer.alloc(16 * 1024 * 1024, `${' '.repeat(10_000)}\n`), { level: 9 });
    const error = await refusal(readScan(bytes(gzipSync('{"address":"192.0.2.1"}\n'), ...Array.from({ length: 40 }, () => block))));
    t.match(error.message, /expands more than 250 times/);
});

t.test('closes its source when it is left early or refuses', async (t) => {
    for (const content of ['{"address":"192.0.2.1"}\n'.repeat(3), 'nonsense', gzipSync('{"address":"192.0.2.1"}\n'.repeat(3))]) {
        let closed = false;
        async function* source(): AsyncGenerator<Uint8Array> {
            try {
                for (;;) {
                    yield Buffer.from(content);
                }
            } finally {
                closed = true;
            }
        }

        try {
            for await (const host of readScan(source())) {
                t.equal(host.address, '192.0.2.1');
                break;
            }
        } catch (error) {
            t.match(error, { code: 'INVALID_INPUT' });
        }

        await until(() => closed);
    }
});

t.test('reads one host of every line that is not blank', async (t) => {
    const hosts = await collect(readHostLines(bytes('\uFEFF{"address":"192.0.2.1","name":"one"}\r\n\r\n  \n{"address":"192.0.2.2"}')));
    t.match(hosts, [{ address: '192.0.2.1', name: 'one' }, { address: '192.0.2.2' }]);
});

t.test('refuses a bad line by its number and reason', async (t) => {
    const good = '{"address":"192.0.2.1"}\n';
    const cases: [string | Uint8Array, RegExp][] = [
        ['{"address":', /^Line 2 is not valid JSON/],
        ['"192.0.2.1"', /^Line 2 is not a JSON object$/],
        ['null', /^Line 2 is not a JSON object$/],
        ['[[{"address":"192.0.2.1"}]]', /^Line 2 is not a JSON object/],
        ['{"name":"x"}', /^Line 2: .*address/],
        [Buffer.from([0x7b, 0xff, 0x7d]), /^Line 2 is not UTF-8 text$/],
        [`{"address":"192.0.2.1","name":"${'x'.repeat(MAX_HOST_LINE)}"}`, /^Line 2 is longer than 32 MiB$/],
    ];

    for (const [line, message] of cases) {
        const error = await refusal(readHostLines(bytes(good, line, '\n', good)));
        t.equal(error.code, 'INVALID_INPUT');
        t.match(error.message, message);
    }
});

t.test('names the field and never the value', async (t) => {
    const error = await refusal(readHostLines(bytes('{"address":"not-an-address-at-all"}')));
    t.equal(error.field, 'address');
    t.notMatch(error.message, 'not-an-address-at-all');
});

t.test('answers anything with hosts or a ScanwireError', async (t) => {
    const line = fc.oneof(
        fc.json(),
        fc.string(),
        fc.record({ address: fc.anything() }).map((value) => JSON.stringify(value)),
    );
    await fc.assert(
        fc.asyncProperty(fc.array(line), fc.uint8Array(), async (lines, tail) => {
            try {
                await collect(readHostLines(bytes(lines.join('\n'), tail)));
            } catch (error) {
                t.ok(error instanceof ScanwireError, String(error));
            }
        }),
        { numRuns: 300 },
    );
});

t.test('leaves the event loop to others while a source that never waits is read', async (t) => {
    const lines = Array.from({ length: 20_000 }, (_, index) => `{"address":"10.1.${index >> 8}.${index & 255}"}`).join('\n');
    const xml = `<nmaprun>${'<host><status state="up"/><address addr="10.0.0.1" addrtype="ipv4"/></host>'.repeat(20_000)}</nmaprun>`;
    for (const [form, text] of Object.entries({ lines, xml })) {
        async function* atOnce(): AsyncGenerator<Uint8Array> {
            yield Buffer.from(text);
        }
        let turns = 0;
        let isRead = false;
        const turn = (): void => {
            turns += 1;
            if (!isRead) {
                setImmediate(turn);
            }
        };
        setImmediate(turn);
        let hosts = 0;
        for await (const _host of readScan(atOnce())) {
            hosts += 1;
        }
        isRead = true;
        t.equal(hosts, 20_000);
        t.ok(turns > 5, `${form}: others had ${turns} turns`);
    }
});
