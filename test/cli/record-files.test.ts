import { readFileSync } from 'node:fs';
import { gzipSync } from 'node:zlib';
import t from 'tap';
import { check } from '../../cli/records/record-files.ts';
import { fixture } from '../support/served.ts';

async function* of(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
    yield bytes.subarray(0, 1);
    yield bytes.subarray(1);
}

const FILE = Buffer.concat([readFileSync(fixture('records/https.jsonl')), Buffer.from('{"port":"443"}\n')]);

t.test('checks a plain file and a packed one alike', async (t) => {
    const plain = await check(of(FILE));
    t.match(plain, { good: 3, bad: 1, problems: [{ line: 4, field: 'data', reason: 'is required' }] });
    t.same(await check(of(gzipSync(FILE))), plain);
});

t.test('says what could be read of a packed file that was cut off', async (t) => {
    const packed = gzipSync(FILE);
    t.match(await check(of(packed.subarray(0, packed.length - 4))), {
        good: 3,
        bad: 2,
        problems: [{}, {}, {}, {}, { line: 5, reason: /gzip/ }],
    });
});
