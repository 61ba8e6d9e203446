import { createInflateRaw, type InflateRaw, inflateRawSync } from 'node:zlib';
import type { ByteReader } from './byte-reader.ts';

/** In bytes: the longest chunk that comes out. Larger ones cost memory, smaller ones a switch of threads each. */
export const INFLATED_CHUNK = 262_144;

/** In bytes, unpacked. */
const SHORT = 4096;

/** One stretch of deflate data (RFC 1951), unpacked. What follows it is not taken. Errors are those of zlib. */
export async function* inflated(bytes: ByteReader): AsyncGenerator<Uint8Array, void, undefined> {
    const whole = await inflatedAtOnce(bytes);
    if (whole !== null) {
        yield whole;
        return;
    }

    const inflating = createInflateRaw({ chunkSize: INFLATED_CHUNK });
    let wake = (): void => {};
    const fed = feed(bytes, inflating, () => new Promise((resolve) => (wake = resolve)));
    try {
        for await (const chunk of inflating as AsyncIterable<Uint8Array>) {
            wake();
            yield chunk;
        }

        await fed;
    } finally {
        inflating.destroy();
        wake();
    }
}

/**
 * The whole stretch, where it is short and ends in the bytes at hand: a stream takes a tenth of a millisecond to make, and a file may
 * be made of a million empty members. Null otherwise; what is wrong the stream will find.
 */
async function inflatedAtOnce(bytes: ByteReader): Promise<Uint8Array | null> {
    const packed = await bytes.next();
    if (packed === null) {
        return null;
    }

    try {
        const unpacked: unknown = inflateRawSync(packed, { info: true, chunkSize: SHORT, maxOutputLength: SHORT });
        const { buffer, engine } = unpacked as { readonly buffer: Buffer; readonly engine: InflateRaw };
        bytes.giveBack(packed.subarray(engine.bytesWritten));
        return buffer;
    } catch {
        bytes.giveBack(packed);
        return null;
    }
}

/**
 * Never rejects: what goes wrong is an error of the stream. The end is told only when all is unpacked and taken, since the news
 * that the file was cut off throws away what is not.
 *
 * @param taken Resolves when the next chunk is taken, or nobody wants more.
 */
async function feed(bytes: ByteReader, inflating: InflateRaw, taken: () => Promise<void>): Promise<void> {
    let given = 0;
    try {
        for (let chunk = await bytes.next(); chunk !== null; chunk = await bytes.next()) {
            if (!(await written(chunk, inflating)) && !inflating.readableEnded) {
                return;
            }

            given += chunk.byteLength;
            const left = given - inflating.bytesWritten;
            if (left > 0) {
                bytes.giveBack(chunk.subarray(chunk.byteLength - left));
                return;
            }
        }

        while (inflating.readableLength > 0 && !inflating.destroyed) {
            await taken();
        }

        inflating.end();
    } catch (error) {
        inflating.destroy(error as Error);
    }
}

/** False when the stream takes no more. */
function written(chunk: Uint8Array, inflating: InflateRaw): Promise<boolean> {
    return new Promise((resolve) => {
        const closed = (): void => resolve(false);
        inflating.once('close', closed);
        inflating.write(chunk, (error) => {
            inflating.off('close', closed);
            resolve(error == null);
        });
    });
}
