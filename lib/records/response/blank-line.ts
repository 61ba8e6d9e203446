export interface BlankLine {
    /** Of the line feed before it. */
    readonly start: number;
    /** Of what comes after it. */
    readonly end: number;
}

const CARRIAGE_RETURN = 0x0d;
const LINE_FEED = 0x0a;

/** The first empty line that follows another line from `from` on. Both may end with LF or CR LF. */
export function blankLine(bytes: Buffer, from: number): BlankLine | null {
    for (let start = bytes.indexOf(LINE_FEED, from); start !== -1; start = bytes.indexOf(LINE_FEED, start + 1)) {
        const lineFeed = bytes[start + 1] === CARRIAGE_RETURN ? start + 2 : start + 1;
        if (bytes[lineFeed] === LINE_FEED) {
            return { start, end: lineFeed + 1 };
        }
    }

    return null;
}
