const NEWLINE = 0x0a;
const CARRIAGE_RETURN = 0x0d;
const FIRST_ROOM = 65_536;

/** One line of a file, without its line ending. */
export interface Line {
    /** From 1. */
    readonly number: number;
    /** Where the line begins, in bytes from the start of the file. */
    readonly byteOffset: number;
    /** Null when the line is longer than allowed. Valid until the next call of the splitter. */
    readonly bytes: Buffer | null;
}

/** Cuts a stream of bytes into lines. It holds at most one line, however the stream is cut into chunks. */
export interface LineSplitter {
    /** The lines that end in this chunk. */
    push(chunk: Uint8Array): Generator<Line>;
    /** The last line, when the file does not end with a line ending. */
    end(): Generator<Line>;
    /** Bytes seen so far. */
    readonly bytes: number;
    /** The line that is not complete yet. */
    readonly current: Pick<Line, 'number' | 'byteOffset'>;
}

/** The lines of a source, those together that end in the same chunk. */
export async function* linesOf(source: AsyncIterable<Uint8Array>, splitter: LineSplitter): AsyncGenerator<Iterable<Line>> {
    for await (const chunk of source) {
        yield splitter.push(chunk);
    }

    yield splitter.end();
}

/** @param maxLineBytes Longest line, without its line ending. */
export function lineSplitter(maxLineBytes: number): LineSplitter {
    let held = Buffer.alloc(0);
    let heldLength = 0;
    let tooLong = false;
    let number = 0;
    let lineStart = 0;
    let seen = 0;

    /** A carriage return at the end may belong to the line ending, so one byte more than allowed is kept. */
    function hold(part: Buffer): void {
        if (tooLong || heldLength + part.length > maxLineBytes + 1) {
            tooLong = true;
            heldLength = 0;
            return;
        }

        if (heldLength + part.length > held.length) {
            const larger = Buffer.allocUnsafe(Math.max(FIRST_ROOM, 2 * held.length, heldLength + part.length));
            larger.set(held.subarray(0, heldLength));
            held = larger;
        }

        held.set(part, heldLength);
        heldLength += part.length;
    }

    function line(bytes: Buffer | null, nextStart: number): Line {
        const content = bytes !== null && bytes[bytes.length - 1] === CARRIAGE_RETURN ? bytes.subarray(0, -1) : bytes;
        const fits = content !== null && content.length <= maxLineBytes;
        number += 1;
        const found = { number, byteOffset: lineStart, bytes: fits ? content : null };
        lineStart = nextStart;
        heldLength = 0;
        tooLong = false;
        return found;
    }

    return {
        get bytes() {
            return seen;
        },

        get current() {
            return { number: number + 1, byteOffset: lineStart };
        },

        *push(bytes) {
            const chunk = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
            const chunkStart = seen;
            seen += chunk.length;
            let from = 0;
            for (let at = chunk.indexOf(NEWLINE); at >= 0; at = chunk.indexOf(NEWLINE, from)) {
                const part = chunk.subarray(from, at);
                const whole = heldLength === 0 && !tooLong;
                if (!whole) {
                    hold(part);
                }

                from = at + 1;
                yield line(whole ? part : tooLong ? null : held.subarray(0, heldLength), chunkStart + from);
            }

            hold(chunk.subarray(from));
        },

        *end() {
            if (heldLength > 0 || tooLong) {
                yield line(tooLong ? null : held.subarray(0, heldLength), seen);
            }
        },
    };
}
