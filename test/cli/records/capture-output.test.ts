import { readFileSync, writeFileSync } from 'node:fs';
import { Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import t from 'tap';
import { recordFile } from '../../../cli/records/capture-output.ts';
import { type HttpsRecord, readRecords } from '../../../lib/records/index.ts';
import { collect } from '../../support/collect.ts';

const RECORDS = Array.from(
    { length: 4 },
    (_, index): HttpsRecord => ({ data: 'SFRUUA==', host: `h${index}.example`, ip: '192.0.2.7', port: 443 }),
);

/** What a run makes of a file that was left to it: the hosts that it kept. */
async function resumed(file: string, packed: boolean, records: readonly HttpsRecord[]): Promise<string[]> {
    const kept: string[] = [];
    const output = await recordFile(file, { packed, onKept: ({ host }) => kept.push(host) });
    for (const record of records.filter(({ host }) => !kept.includes(host))) {
        await output.write(record);
    }

    await output.close();
    return kept;
}

for (const packed of [false, true]) {
    const form = packed ? 'packed' : 'plain';
    t.test(`keeps each whole record of a ${form} file that was cut at any byte`, async (t) => {
        const file = `${t.testdir({})}/records`;
        const ends: number[] = [];
        for (const count of RECORDS.keys()) {
            await resumed(file, packed, RECORDS.slice(0, count + 1));
            // a plain line may lack its end
            ends.push(readFileSync(file).length - (packed ? 0 : 1));
        }

        const whole = readFileSync(file);
        for (let length = 0; length <= whole.length; length += 1) {
            writeFileSync(file, whole.subarray(0, length));
            const kept = await resumed(file, packed, RECORDS);
            t.equal(kept.length, ends.filter((end) => end <= length).length, `cut at ${length}`);
            t.ok(readFileSync(file).equals(whole));
        }

        const lines = await collect(readRecords(Readable.from([whole])));
        t.same(
            lines.map((line) => line.ok && line.record),
            RECORDS,
        );
        t.equal((packed ? gunzipSync(whole) : whole).toString().split('\n').length, RECORDS.length + 1);
    });
}

t.test('goes on with no packed file that holds something else, or is damaged, and leaves it alone', async (t) => {
    const file = `${t.testdir({})}/records`;
    await resumed(file, true, RECORDS);
    const whole = readFileSync(file);
    const damaged = Buffer.from(whole).fill(0, 40, 44);
    for (const bytes of [
        damaged,
        Buffer.concat([whole, Buffer.from('and so on')]),
        Buffer.concat([whole, gzipSync('dear diary')]),
        gzipSync(gunzipSync(whole)),
        Buffer.from('\x1f'.repeat(100)),
        Buffer.from('d'),
    ]) {
        writeFileSync(file, bytes);
        await t.rejects(resumed(file, true, RECORDS), { code: 'INVALID_INPUT', message: /^Cannot go on with the output file/ });
        t.ok(readFileSync(file).equals(bytes));
    }
});
