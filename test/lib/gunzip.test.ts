import { setImmediate } from 'node:timers/promises';
import { constants, createGzip, gzipSync } from 'node:zlib';
import t from 'tap';
import { GzipError, unpacked } from '../../lib/gunzip.ts';
import { allOf, GZIP_FILES, noise, overwritten, text } from '../support/damaged-gzip.ts';
import { seeded } from '../support/seeded.ts';

const MIB = 1_048_576;
const STEP = 65_536;

async function* chunks(bytes: Buffer, size: number): AsyncGenerator<Uint8Array, void, undefined> {
    for (let at = 0; at < bytes.length; at += size) {
        yield bytes.subarray(at, at + size);
    }
}

interface Unpacked {
    readonly bytes: Buffer;
    readonly error: unknown;
}

async function unpack(source: AsyncIterable<Uint8Array>): Promise<Unpacked> {
    const parts: Uint8Array[] = [];
    try {
        for await (const part of unpacked(source)) {
            parts.push(part);
        }
    } catch (error) {
        return { bytes: Buffer.concat(parts), error };
    }

    return { bytes: Buffer.concat(parts), error: null };
}

t.test('hands on all that comes before damage, whatever the chunks', async (t) => {
    for (const [name, { bytes, reason }] of Object.entries(GZIP_FILES)) {
        const expected = allOf(bytes);
        for (const size of [700, 65_536, bytes.length]) {
            const result = await unpack(chunks(bytes, size));
            t.ok(result.bytes.equals(expected), `${name}, chunks of ${size}`);
            t.equal(result.error instanceof GzipError, reason !== null);
        }
    }
});

t.test('hands on all that comes before damage, wherever it is', async (t) => {
    const random = seeded(20_261_122);
    const members = Array.from({ length: 300 }, () => gzipSync(text(1 + Math.floor(random() * 20))));
    for (const packed of [gzipSync(text(900)), Buffer.concat(members), Buffer.concat([gzipSync(text(900)), ...members])]) {
        for (let round = 0; round < 8; round += 1) {
            const damaged = overwritten(packed, Math.floor(random() * packed.length), 20_000);
            const { bytes } = await unpack(chunks(damaged, 1 + Math.floor(random() * 200_000)));
            t.ok(bytes.equals(allOf(damaged)));
        }
    }
});

t.test('loses the same 64 KiB at most behind the first MiB of a member, whatever the chunks', async (t) => {
    const packed = gzipSync(text(3500));
    t.ok(packed.length > 1.5 * MIB);
    const more = Buffer.concat([packed, noise(MIB)]);
    const later = Buffer.concat([gzipSync(text(9)), packed]);
    for (const bytes of [
        overwritten(packed, 1.25 * MIB, 200_000),
        overwritten(packed, 1.5 * MIB, 200_000),
        overwritten(later, 1.25 * MIB, 200_000),
        more,
    ]) {
        const expected = allOf(bytes);
        const { bytes: first } = await unpack(chunks(bytes, 65_536));
        t.ok(first.equals(expected.subarray(0, first.length)));
        t.ok(expected.length - first.length <= STEP, `${expected.length - first.length} bytes`);
        for (const size of [1460, 50_000, 300_000, bytes.length]) {
            const { bytes: again, error } = await unpack(chunks(bytes, size));
            t.equal(again.length, first.length, `chunks of ${size}`);
            t.ok(error instanceof GzipError);
        }
    }
});

t.test('gives the same of a source that can be read again, which is read again only for what zlib threw away', async (t) => {
    const packed = gzipSync(text(3500));
    const sources: readonly (readonly [name: string, bytes: Buffer, readAgain: number])[] = [
        ['whole', packed, 0],
        ['damaged behind the first MiB', overwritten(packed, 1.25 * MIB, 200_000), 1],
        ['with more behind a long member', Buffer.concat([packed, noise(MIB)]), 1],
        ['cut off behind the first MiB', packed.subarray(0, -9), 0],
        ['damaged within the first MiB', overwritten(packed, 0.5 * MIB, 200_000), 0],
        ['that expands beyond all measure', gzipSync(Buffer.alloc(80 * MIB)), 1],
    ];
    for (const [name, bytes, readAgain] of sources) {
        let readings = 0;
        const again = (): AsyncIterable<Uint8Array> => {
            readings += 1;
            return chunks(bytes, 65_536);
        };
        const expected = await unpack(chunks(bytes, 65_536));
        const result = await unpack(Object.assign(chunks(bytes, 65_536), { again }));
        t.ok(result.bytes.equals(expected.bytes), name);
        t.strictSame(result.error, expected.error, name);
        t.equal(readings, readAgain, name);
    }
});

t.test('says what it met first where the source cannot be read again by then', async (t) => {
    const bytes = overwritten(gzipSync(text(3500)), 1.25 * MIB, 200_000);
    const lost: AsyncIterable<Uint8Array> = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(new Error('was removed')) }) };
    const expected = await unpack(chunks(bytes, 65_536));
    const result = await unpack(Object.assign(chunks(bytes, 65_536), { again: () => lost }));
    t.strictSame(result.error, expected.error);
    t.ok(expected.bytes.subarray(0, result.bytes.length).equals(result.bytes) && result.bytes.length > MIB);
});

t.test('says what it met first where the source was made whole by then, after all that is there', async (t) => {
    const packed = gzipSync(text(3500));
    const bytes = overwritten(packed, 1.25 * MIB, 200_000);
    const expected = await unpack(chunks(bytes, 65_536));
    const result = await unpack(Object.assign(chunks(bytes, 65_536), { again: () => chunks(packed, 65_536) }));
    t.strictSame(result.error, expected.error);
    t.ok(result.bytes.equals(allOf(packed)));
});

t.test('loses nothing before a wrong checksum or the end of a long member that was cut off', async (t) => {
    const packed = gzipSync(text(3500));
    for (const member of [overwritten(packed, packed.length - 8, 4), overwritten(packed, packed.length - 4, 4), packed.subarray(0, -9)]) {
        for (const bytes of [member, Buffer.concat([packed, member])]) {
            const expected = allOf(bytes);
            for (const size of [50_000, 65_536, bytes.length]) {
                const result = await unpack(chunks(bytes, size));
                t.ok(result.bytes.equals(expected), `chunks of ${size}`);
                t.ok(result.error instanceof GzipError);
            }
        }
    }
});

t.test('unpacks long members whole, whatever the chunks', async (t) => {
    const plain = text(3500);
    const packed = gzipSync(plain);
    for (const size of [1460, 65_536, MIB, 2 * packed.length]) {
        const { bytes, error } = await unpack(chunks(Buffer.concat([packed, packed]), size));
        t.ok(bytes.equals(Buffer.concat([plain, plain])), `chunks of ${size}`);
        t.equal(error, null);
    }
});

t.test('loses nothing to a reader that takes its time', async (t) => {
    const damaged = overwritten(gzipSync(text(900)), 300_000);
    const parts: Uint8Array[] = [];
    await t.rejects(
        async () => {
            for await (const part of unpacked(chunks(damaged, 65_536))) {
                parts.push(part);
                for (let turn = 0; turn < 200; turn += 1) {
                    await setImmediate();
                }
            }
        },
        { message: 'The gzip file is damaged or was cut off' },
    );
    t.ok(Buffer.concat(parts).equals(allOf(damaged)));
});

t.test('hands on what has come while more is still to come', async (t) => {
    const packing = createGzip();
    const lines = unpacked(packing);
    for (const line of ['one\n', 'two\n']) {
        packing.write(line);
        packing.flush(constants.Z_SYNC_FLUSH);
        t.equal(String((await lines.next()).value), line);
    }

    packing.end();
    t.equal((await lines.next()).done, true);
});
