/** Where a body ends, given all bytes received so far; null while there may be more to come. */
export type BodyEnd = (received: Buffer) => number | null;

const LF = 0x0a;
const SIZE = /^[0-9a-f]{1,12}$/i;
/** What belongs to the size is at the start of its line; extensions may be of any length. */
const SIZE_ROOM = 32;

/** The end of a chunked body that begins at `start`: behind its trailer. One that is not chunked as it says ends with the connection. */
export function chunksEnd(start: number): BodyEnd {
    let expected: 'size' | 'end of data' | 'trailer' | 'nothing' = 'size';
    let lineStart = start;
    let seen = start;

    /** The start of the next line; null while it is not whole. */
    function nextLine(received: Buffer): string | null {
        const end = received.indexOf(LF, seen);
        if (end === -1) {
            seen = Math.max(seen, received.length);
            return null;
        }

        const text = received.toString('latin1', lineStart, Math.min(end, lineStart + SIZE_ROOM));
        lineStart = end + 1;
        seen = lineStart;
        return text.trim();
    }

    function takeSize(line: string): void {
        const [text = ''] = line.split(';', 1);
        const size = SIZE.test(text.trim()) ? Number.parseInt(text, 16) : null;
        expected = size === null ? 'nothing' : size === 0 ? 'trailer' : 'end of data';
        lineStart += size ?? 0;
        seen = lineStart;
    }

    return (received) => {
        while (expected !== 'nothing') {
            const line = nextLine(received);
            if (line === null) {
                return null;
            }

            if (expected === 'size') {
                takeSize(line);
            } else if (expected === 'end of data') {
                expected = line === '' ? 'size' : 'nothing';
            } else if (line === '') {
                return lineStart;
            }
        }

        return null;
    };
}
