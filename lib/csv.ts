/** Where a cell that begins with one of these is opened in a spreadsheet, it is run: what scans bring may be written by an attacker. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
const NEEDS_QUOTES = /[",\r\n]|^\s|\s$|^$/;

/** A line of RFC 4180. What is null is empty, an empty text is `""`; a text that a spreadsheet would take for a formula gets a `'` in front. */
export function csvLine(values: readonly unknown[]): string {
    return `${values.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: unknown): string {
    if (value === null || value === undefined) {
        return '';
    }

    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const safe = typeof value === 'string' && FORMULA.test(text) ? `'${text}` : text;
    return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
