import t from 'tap';
import type { ScanwireError } from '../../../../lib/errors.ts';
import { badLines } from '../../../../lib/inventory/scan-files/bad-lines.ts';
import { readScan } from '../../../../lib/inventory/scan-files/read-scan.ts';
import { bytes, refusal } from './scan-source.ts';

const GOOD = '{"address":"192.0.2.1"}\n';

async function readsOf(...parts: string[]): Promise<{ readonly hosts: number; readonly error: ScanwireError }> {
    let hosts = 0;
    const counted = async function* () {
        for await (const host of readScan(bytes(...parts))) {
            hosts += 1;
            yield host;
        }
    };
    return { error: await refusal(counted()), hosts };
}

t.test('names every bad line of JSON, with number, field and reason, and gives no host behind the first', async (t) => {
    const { hosts, error } = await readsOf(
        GOOD,
        '{"address":"nowhere"}\n',
        GOOD,
        'no json\n',
        '{"address":"192.0.2.1","services":[{}]}\n',
        '[]',
    );
    t.equal(hosts, 1);
    t.equal(error.field, 'address');
    t.equal(error.message, 'Line 2: address must be an IPv4 or IPv6 address; 2 more lines are bad');
    t.strictSame(error.problems, [
        { line: 2, field: 'address', message: 'Line 2: address must be an IPv4 or IPv6 address' },
        { line: 4, message: 'Line 4 is not valid JSON: write one host, a JSON object, on each line' },
        { line: 5, field: 'services[0].port', message: 'Line 5: services[0].port is required' },
    ]);
});

t.test('says of a single one no more than what is wrong', async (t) => {
    const { error } = await readsOf('{}\n', GOOD);
    t.equal(error.message, 'Line 1: address is required');
    t.equal(error.problems?.length, 1);
});

t.test('names the first 100 and reads no further', async (t) => {
    let read = 0;
    async function* endless(): AsyncGenerator<Uint8Array> {
        for (; ; read += 1) {
            yield Buffer.from('{}\n');
        }
    }
    const error = await refusal(readScan(endless()));
    t.equal(error.problems?.length, 100);
    t.match(error.message, /^Line 1: address is required; 99 more lines are bad, and what is behind them was not read$/);
    t.ok(read < 200);
});

t.test('names every bad host of XML, and what ends the reading', async (t) => {
    const host = (address: string): string => `<host><address addr="${address}"/></host>\n`;
    const one = await readsOf(`<nmaprun>\n${host('a')}${host('192.0.2.1')}${host('b')}</nmaprun>`);
    t.equal(one.hosts, 0);
    t.match(one.error.message, /^Line 2, column 32: in the host that ends here, address .*; 1 more line is bad$/);
    t.match(one.error.problems, [
        { line: 2, field: 'address' },
        { line: 4, field: 'address' },
    ]);
    const cut = await readsOf(`<nmaprun>\n${host('a')}<host>`);
    t.match(cut.error.problems, [{ line: 2 }, { line: 3, message: /the file ends before/ }]);
    const many = await readsOf(`<nmaprun>\n${host('a').repeat(150)}</nmaprun>`);
    t.equal(many.error.problems?.length, 100);
});

t.test('lets errors pass that are of no line', async (t) => {
    const failed = new Error('the source broke');
    t.throws(() => badLines().add(1, failed), failed);
    badLines().end();
});
