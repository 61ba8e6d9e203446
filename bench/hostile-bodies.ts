import { gzipSync } from 'node:zlib';

/* Bodies of batches that are to cost a server more than their bytes are worth, and the records that they are measured by. */

const MIB = 1_048_576;

function filled(unit: string, bytes: number): Buffer {
    return Buffer.from(unit.repeat(Math.ceil(bytes / unit.length)));
}

/** Records as a scanner writes them, of about so many bytes. */
export function plainRecords(bytes: number): Buffer {
    const lines: string[] = [];
    for (let length = 0; length < bytes; length += lines.at(-1)?.length ?? 0) {
        const data = Buffer.alloc(200, `HTTP/1.1 200 OK ${lines.length}`).toString('base64');
        lines.push(`${JSON.stringify({ data, host: `www${lines.length}.example.com`, ip: '192.0.2.7', port: 443 })}\n`);
    }

    return Buffer.from(lines.join(''));
}

const keys = Array.from({ length: 60_000 }, (_, index) => `"k${index}":1`).join(',');

/** A key is long for V8, which then hashes by its length alone, from 16,384 characters on. */
const repeated = Array.from({ length: 1_600 }, (_, index) => `"${1_000 + index}":1,"${1_000 + index}":1`).join(',');

/** Batches of records by what they are. */
export const HOSTILE: Readonly<Record<string, Buffer>> = {
    '2 kB of gzip with a million bad lines': gzipSync(filled('{}\n', 2 * MIB)),
    '486 kB of gzip with blank lines': gzipSync(filled('\n', 500 * MIB)),
    'gzip with one endless line': gzipSync(Buffer.alloc(100 * MIB, ' ')),
    'gzip with nearly right records': gzipSync(filled(`${JSON.stringify({ data: '', host: 'a', ip: '::', port: 0 })}\n`, 50 * MIB)),
    'gzip with objects of many keys': gzipSync(Buffer.from(`{${keys}}\n`.repeat(20))),
    'a MiB of lines of one character': filled('x\n', MIB),
    'a MiB of empty objects': filled('{}\n', MIB),
    'a line of keys that are repeated below a long one': Buffer.from(`{"${'p'.repeat(16_384)}":{${repeated}}}`),
};

const event = (body: string): Buffer => Buffer.from(`{"kind":"idr_investigation_created","body":${body}}`);

/** Events by what they are; those whose names begin with `gzip` say that they are packed. */
export const HOSTILE_EVENTS: Readonly<Record<string, Buffer>> = {
    'gzip of an event of 100 MiB': gzipSync(event(`"${'x'.repeat(100 * MIB)}"`)),
    'an event of a MiB of brackets': event('['.repeat(MIB)),
    'an event of a MiB of lists in lists': event(`${'['.repeat(MIB / 2)}${']'.repeat(MIB / 2)}`),
    'an event of many keys': event(`{${keys}}`),
    'an event of a MiB of escapes': event(`{"title":"${'\\u0000'.repeat(MIB / 6)}"}`),
};
