import { constants, gunzipSync, gzipSync } from 'node:zlib';
import { seeded } from './seeded.ts';

/** A gzip file, whole or not, and why reading it ends before its end; null where it does not. */
export interface GzipFile {
    readonly bytes: Buffer;
    readonly reason: RegExp | null;
}

const WHOLE = null;
const DAMAGED = /^is where reading ends: The gzip file is damaged or was cut off$/;
const MORE = /^is where reading ends: The gzip file has something else behind it: not read any further$/;
const PADDED = /^is where reading ends: The gzip file has padding with something behind it: not read any further$/;

const random = seeded(20_261_122);

/** Every kind of damage to a file of records, and forms of whole files that are not read in one go. No member is longer than 1 MiB. */
export const GZIP_FILES: Readonly<Record<string, GzipFile>> = gzipFiles(text);

/** The same of other lines. @param text So many of them, which pack badly. */
export function gzipFiles(text: (lines: number) => Buffer): Readonly<Record<string, GzipFile>> {
    const all = text(1500);
    const packed = gzipSync(all);
    /** As bgzip makes it. */
    const blocks = Array.from({ length: Math.ceil(all.length / 65_280) }, (_, index) =>
        gzipSync(all.subarray(index * 65_280, (index + 1) * 65_280)),
    );
    const empty = gzipSync('');
    const empties = Buffer.alloc(300_000 * empty.length, empty);
    const line = text(1);

    return {
        whole: { bytes: packed, reason: WHOLE },
        'of two members': { bytes: Buffer.concat([packed, packed]), reason: WHOLE },
        'of many members of 64 KiB': { bytes: Buffer.concat(blocks), reason: WHOLE },
        'of 300,000 empty members': {
            bytes: Buffer.concat([gzipSync(line), empties, gzipSync(line)]),
            reason: WHOLE,
        },
        'with zeros behind its end': { bytes: Buffer.concat([packed, Buffer.alloc(70_000)]), reason: WHOLE },
        'with a file behind zeros': { bytes: Buffer.concat([packed, Buffer.alloc(70_000), packed]), reason: PADDED },
        'with a line behind its end': { bytes: Buffer.concat([packed, line]), reason: MORE },
        'with much behind its end': { bytes: Buffer.concat([packed, noise(200_000).fill('x', 0, 2)]), reason: MORE },
        'with a line break behind its end': { bytes: Buffer.concat([packed, Buffer.from('\n')]), reason: DAMAGED },
        'cut off': { bytes: packed.subarray(0, packed.length >> 1), reason: DAMAGED },
        'cut off in its checksum': { bytes: packed.subarray(0, -6), reason: DAMAGED },
        'cut off in the header of its second member': { bytes: Buffer.concat([packed, packed.subarray(0, 5)]), reason: DAMAGED },
        'with a wrong checksum': { bytes: flipped(packed, -8), reason: DAMAGED },
        'with a wrong length': { bytes: flipped(packed, -1), reason: DAMAGED },
        'with a wrong checksum in the middle': {
            bytes: Buffer.concat([...blocks.slice(0, 5), flipped(blocks[5] as Buffer, -8), ...blocks.slice(6)]),
            reason: DAMAGED,
        },
        'damaged in the middle': { bytes: overwritten(packed, packed.length >> 1, 100_000), reason: DAMAGED },
        'with one wrong byte': { bytes: flipped(packed, packed.length >> 2), reason: DAMAGED },
        'damaged near its end': { bytes: overwritten(packed, packed.length - 1000), reason: DAMAGED },
        'damaged in one of many members': {
            bytes: Buffer.concat([...blocks.slice(0, 7), overwritten(blocks[7] as Buffer, 20_000), ...blocks.slice(8)]),
            reason: DAMAGED,
        },
        'with an unknown flag': { bytes: flipped(packed, 3, 0x80), reason: DAMAGED },
        'small and damaged': { bytes: overwritten(gzipSync(all.subarray(0, 5000)), 2000), reason: DAMAGED },
    };
}

/**
 * Bytes that pack badly, the same in each run. They must be: what Node's zlib makes of noise that it takes for deflate data depends, once
 * in some thousand cases, on how the noise is cut into chunks.
 */
export function noise(count: number): Buffer {
    return Buffer.from(Array.from({ length: count }, () => Math.floor(random() * 256)));
}

/** Records of about 700 bytes that pack badly, as responses do. */
export function text(records: number): Buffer {
    const lines = Array.from({ length: records }, (_, index) =>
        JSON.stringify({ data: noise(450).toString('base64'), host: `h${index}.example`, ip: '192.0.2.7', port: 443 }),
    );
    return Buffer.from(lines.map((line) => `${line}\n`).join(''));
}

function flipped(bytes: Buffer, at: number, bits = 1): Buffer {
    const index = (at + bytes.length) % bytes.length;
    const changed = Buffer.from(bytes);
    changed[index] = (changed[index] as number) ^ bits;
    return changed;
}

/** With so many bytes of noise; zlib finds that wrong somewhat later, or in the checksum only. */
export function overwritten(bytes: Buffer, at: number, count = 64): Buffer {
    const inserted = noise(count).subarray(0, bytes.length - at);
    return Buffer.concat([bytes.subarray(0, at), inserted, bytes.subarray(at + inserted.length)]);
}

/** All that zlib can unpack of it, at once and byte by byte: what comes out of the longest beginning without an error. */
export function allOf(bytes: Buffer): Buffer {
    let [good, bad] = [0, bytes.length + 1];
    let unpacked = Buffer.alloc(0);
    for (let length = bytes.length; bad - good > 1; length = (good + bad) >>> 1) {
        try {
            unpacked = gunzipSync(bytes.subarray(0, length), { finishFlush: constants.Z_SYNC_FLUSH });
            good = length;
        } catch {
            bad = length;
        }
    }

    return unpacked;
}
