import { GZIP, GzipError, gunzip } from './gunzip.ts';
import { openingOf, startsWith } from './opening.ts';

/** What other packers begin with, and no text does. */
const OTHERS: readonly (readonly [name: string, start: string])[] = [
    ['a zip file', 'PK\x03\x04'],
    ...Array.from('123456789', (level) => ['packed with bzip2', `BZh${level}1AY&SY`] as const),
    ['packed with xz', '\xfd7zXZ\0'],
    ['packed with zstd', '\x28\xb5\x2f\xfd'],
];
const LONGEST = 10;

/**
 * The bytes of a file, unpacked where its first ones say that it is gzip, of one member or of several. What comes before
 * the end of a file that was cut off, or what else ends the reading, is handed on before the error.
 *
 * @throws GzipError for gzip that is damaged, cut off or expands beyond all measure, and for other archives.
 */
export async function* unpacked(source: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array, void, undefined> {
    const opening = await openingOf(source, LONGEST);
    if (startsWith(opening.head, GZIP)) {
        yield* gunzip(opening);
        return;
    }

    try {
        assertReadable(opening.head);
        yield* opening;
    } finally {
        await opening.return();
    }
}

function assertReadable(head: Uint8Array): void {
    const text = Buffer.from(head.subarray(0, LONGEST)).toString('latin1');
    const other = OTHERS.find(([, start]) => text.startsWith(start));
    if (other !== undefined) {
        throw new GzipError(`The file is ${other[0]}: unpack it first, only gzip is read packed`);
    }
}
