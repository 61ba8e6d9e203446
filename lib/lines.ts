/** One line of a byte stream, without its line break. */
export interface Line {
    /** From 1. */
    readonly number: number;
    /** Null for a line longer than the limit: its bytes were dropped unread. */
    readonly bytes: Uint8Array | null;
}

const LF = 0x0a;
const CR = 0x0d;

/**
 * Splits at LF or CR LF; a missing last line break is fine, and an empty source has no lines. The lines come in batches, those
 * that ended within one chunk; beyond the chunk at most `limit` bytes are held, however long the lines of the source are.
 */
export async function* readLines(source: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<readonly Line[], void, undefined> {
    let number = 1;
    let parts: Uint8Array[] = [];
    let length = 0;

    const keep = (part: Uint8Array): void => {
        length += part.byteLength;
        if (length <= limit + 1) {
            parts.push(part);
        } else {
            parts = [];
        }
    };

    const finish = (): Line => {
        const line = { number, bytes: lineBytes(parts, length, limit) };
        number += 1;
        parts = [];
        length = 0;
        return line;
    };

    for await (const chunk of source) {
        const lines: Line[] = [];
        let start = 0;
        for (let end = chunk.indexOf(LF); end !== -1; end = chunk.indexOf(LF, start)) {
            keep(chunk.subarray(start, end));
            start = end + 1;
            lines.push(finish());
        }

        if (start < chunk.byteLength) {
            keep(chunk.subarray(start));
        }

        yield lines;
    }

    if (length > 0) {
        yield [finish()];
    }
}

/** The limit does not count the CR of a CR LF, hence one byte more than the limit may have been kept. */
function lineBytes(parts: readonly Uint8Array[], length: number, limit: number): Uint8Array | null {
    if (length > limit + 1) {
        return null;
    }

    const bytes = parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts, length);
    const line = bytes.at(-1) === CR ? bytes.subarray(0, -1) : bytes;
    return line.byteLength > limit ? null : line;
}
