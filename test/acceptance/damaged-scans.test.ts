import { Readable } from 'node:stream';
import t from 'tap';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import { collect } from '../support/collect.ts';
import { gzipFiles, noise } from '../support/damaged-gzip.ts';
import { scanwireEach } from '../support/scanwire.ts';
import { serve, usedDataOf } from '../support/served.ts';

/** Of hosts, about as long as lines of records. */
function hosts(count: number): Buffer {
    const lines = Array.from({ length: count }, (_, index) =>
        JSON.stringify({ address: `192.0.${index >> 8}.${index & 255}`, comments: noise(450).toString('base64') }),
    );
    return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

t.test('imports a scan that is whole, and nothing of one that is damaged', async (t) => {
    const files = Object.entries(gzipFiles(hosts));
    const folder = t.testdir(Object.fromEntries(files.map(([, { bytes }], index) => [`${index}.gz`, bytes])));
    const data = await usedDataOf(t);
    await serve(t, data);
    const ran = await scanwireEach(
        files.map((_, index) => ({ args: ['import', `${folder}/${index}.gz`, '--dry-run', '--json', '--data', data] })),
    );
    for (const [index, [name, { bytes, reason }]] of files.entries()) {
        const { stdout, stderr, code } = ran[index] as (typeof ran)[number];
        const message = reason === null ? null : new RegExp(reason.source.replace('is where reading ends: ', ''));
        t.equal(code, reason === null ? 0 : 1, `${name}: ${stderr}`);
        if (message === null) {
            const found = new Set((await collect(readScan(Readable.from([bytes])))).map(({ address }) => address));
            t.match(JSON.parse(stdout), { hosts: { new: found.size } }, name);
        } else {
            t.match(JSON.parse(stderr), { error: { code: 'INVALID_INPUT', message } }, name);
        }
    }
});
