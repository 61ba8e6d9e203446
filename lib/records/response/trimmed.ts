const SPACE = 0x20;
const TAB = 0x09;
const CARRIAGE_RETURN = 0x0d;

/** The part of the text without spaces, tabs and carriage returns at its ends. `trim()` would take bytes of UTF-8 text for white space. */
export function trimmed(text: string, from: number, to: number): string {
    let start = from;
    let end = to;
    while (start < end && isBlank(text.charCodeAt(start))) {
        start += 1;
    }

    while (end > start && isBlank(text.charCodeAt(end - 1))) {
        end -= 1;
    }

    return text.slice(start, Math.max(start, end));
}

export function isBlank(code: number | undefined): boolean {
    return code === SPACE || code === TAB || code === CARRIAGE_RETURN;
}
