/** The first bytes of what is read as a stream, by which its form is known. */
import type { Readable } from 'node:stream';

const BOM = [0xef, 0xbb, 0xbf];

/** Bytes before the first one that is not blank. */
const BLANK_LIMIT = 64 * 1024;

const NOTHING: Buffer = Buffer.alloc(0);

/** A source whose first bytes are known. */
export interface Peeked extends AsyncIterable<Uint8Array> {
    readonly head: Uint8Array;
    /** Ends the source, read or not. Never rejects. */
    return(): Promise<void>;
}

/** Reads until there are `size` bytes and one that is not blank, or the source ends. */
export async function peek(source: AsyncIterable<Uint8Array>, size: number): Promise<Peeked> {
    const iterator = source[Symbol.asyncIterator]();
    let head: Uint8Array = NOTHING;
    let ended = false;
    while (!ended && (head.byteLength < size || firstCharacter(head) === null) && head.byteLength < BLANK_LIMIT) {
        const next = await iterator.next();
        ended = next.done === true;
        head = next.done === true ? head : Buffer.concat([head, next.value]);
    }

    return {
        head,
        async *[Symbol.asyncIterator]() {
            yield head;
            for (let next = await iterator.next(); next.done !== true; next = await iterator.next()) {
                yield next.value;
            }
        },
        async return() {
            // The iterator of a stream that is just being read from would wait for the next bytes first.
            (source as Partial<Readable>).destroy?.();
            await Promise.resolve(iterator.return?.()).catch(() => {});
        },
    };
}

/** The first byte that is neither blank nor part of a byte order mark, null without one. */
export function firstCharacter(head: Uint8Array): number | null {
    const start = startsWith(head, BOM) ? BOM.length : 0;
    return head.subarray(start).find((byte) => byte !== 0x20 && (byte < 0x09 || byte > 0x0d)) ?? null;
}

/** Whether the bytes begin with these. */
export function startsWith(bytes: Uint8Array, start: readonly number[] | Uint8Array): boolean {
    return start.every((byte, index) => bytes[index] === byte);
}
