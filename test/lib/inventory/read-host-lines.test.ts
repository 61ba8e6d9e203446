import fc from 'fast-check';
import t from 'tap';
import { HOST_LINE_LIMIT, readHostLines } from '../../../lib/inventory/read-host-lines.ts';
import { ScanwireError } from '../../../lib/scanwire-error.ts';
import { collect } from '../../support/collect.ts';
import { bytes, refusal } from './scan-source.ts';

t.test('reads one host of every line that is not blank', async (t) => {
    const hosts = await collect(readHostLines(bytes('\uFEFF{"address":"192.0.2.1","name":"one"}\r\n\r\n  \n{"address":"192.0.2.2"}')));
    t.match(hosts, [{ address: '192.0.2.1', name: 'one' }, { address: '192.0.2.2' }]);
});

t.test('refuses a bad line by its number and reason', async (t) => {
    const good = '{"address":"192.0.2.1"}\n';
    const cases: [string | Uint8Array, RegExp][] = [
        ['{"address":', /^Line 2 is not valid JSON$/],
        ['"192.0.2.1"', /^Line 2 is not a JSON object$/],
        ['null', /^Line 2 is not a JSON object$/],
        ['[{"address":"192.0.2.1"}]', /^Line 2 holds a list/],
        ['{"name":"x"}', /^Line 2: .*address/],
        [Buffer.from([0x7b, 0xff, 0x7d]), /^Line 2 is not UTF-8 text$/],
        [`{"address":"192.0.2.1","name":"${'x'.repeat(HOST_LINE_LIMIT)}"}`, /^Line 2 is longer than 1 MiB$/],
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
