/** Bytes that come in chunks, taken as they are needed. */
export interface ByteReader {
    /** The next so many bytes, fewer where the source ends. */
    take(length: number): Promise<Buffer>;
    /** What comes next, as long as it happens to be; null at the end. */
    next(): Promise<Uint8Array | null>;
    /** Puts the end of what was taken last back to the front. */
    giveBack(bytes: Uint8Array): void;
    /** Number of bytes that were taken. */
    readonly taken: number;
}

export function byteReader(source: AsyncIterable<Uint8Array>): ByteReader {
    const iterator = source[Symbol.asyncIterator]();
    let given: Uint8Array = new Uint8Array(0);
    let taken = 0;

    async function next(): Promise<Uint8Array | null> {
        let chunk = given;
        given = new Uint8Array(0);
        while (chunk.byteLength === 0) {
            const result = await iterator.next();
            if (result.done === true) {
                return null;
            }

            chunk = result.value;
        }

        taken += chunk.byteLength;
        return chunk;
    }

    function giveBack(bytes: Uint8Array): void {
        given = bytes;
        taken -= bytes.byteLength;
    }

    return {
        next,
        giveBack,

        async take(length) {
            const parts: Uint8Array[] = [];
            let missing = length;
            while (missing > 0) {
                const chunk = await next();
                if (chunk === null) {
                    break;
                }

                parts.push(chunk.subarray(0, missing));
                giveBack(chunk.subarray(missing));
                missing -= Math.min(missing, chunk.byteLength);
            }

            return Buffer.concat(parts);
        },

        get taken() {
            return taken;
        },
    };
}
