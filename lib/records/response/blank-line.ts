export interface BlankLine {
    /** Of the line feed before it. */
    readonly start: number;
    /** Of what comes after it. */
    readonly end: number;
}

/** Nearly all heads are shorter, and text is searched quicker than bytes. */
const NEAR_BYTES = 1024;
const BLANK = /\n\r?\n/;
const LF_LF = Buffer.from('\n\n');
const LF_CR_LF = Buffer.from('\n\r\n');

/** The first empty line that follows another line from `from` on. Both may end with LF or CR LF. */
export function blankLine(bytes: Buffer, from: number): BlankLine | null {
    const near = BLANK.exec(bytes.toString('latin1', from, from + NEAR_BYTES));
    if (near === null) {
        return from + NEAR_BYTES < bytes.length ? farBlankLine(bytes, from) : null;
    }

    const start = from + near.index;
    return { start, end: start + near[0].length };
}

function farBlankLine(bytes: Buffer, from: number): BlankLine | null {
    const crLf = bytes.indexOf(LF_CR_LF, from);
    // No further than needed: the body may be long.
    const lf = (crLf === -1 ? bytes : bytes.subarray(0, crLf + 1)).indexOf(LF_LF, from);
    if (lf !== -1) {
        return { start: lf, end: lf + 2 };
    }

    return crLf === -1 ? null : { start: crLf, end: crLf + 3 };
}
