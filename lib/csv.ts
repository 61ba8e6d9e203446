/** Where a cell that begins with one of these is opened in a spreadsheet, it is run: what scans bring may be written by an attacker. */
const FORMULA = /^[=+\-@\t\r\n＝＋－＠]/;
/**
 * Where a spreadsheet begins another cell whose settings have it split at semicolons or tabs. Quotes keep none together there, as it looks for them
 * at the beginning of its own cells alone, and leaves them out in front of a formula.
 */
const FORMULA_WITHIN = /(?<=[;\t\r\n])(?="*[=+\-@＝＋－＠])/g;
const NEEDS_QUOTES = /[",;\t\r\n]|^\s|\s$|^$/;

/** A line of RFC 4180. What is null is empty, an empty text is `""`; what a spreadsheet would take for a formula gets a `'` in front. */
export function csvLine(values: readonly unknown[]): string {
    return `${values.map(csvCell).join(',')}\r\n`;
}

function csvCell(value: unknown): string {
    if (value === null || value === undefined) {
        return '';
    }

    const text = typeof value === 'string' ? value : JSON.stringify(value);
    const within = text.replace(FORMULA_WITHIN, "'");
    const safe = typeof value === 'string' && FORMULA.test(text) ? `'${within}` : within;
    return NEEDS_QUOTES.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
