/** Control and direction characters: a terminal acts on them, and shows something else than what is there. */
const UNPRINTABLE = /[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu;

/** Text from outside, safe to print on a terminal and to keep in a database: control and direction characters are shown as `�`. */
export function printable(text: string): string {
    return text.replace(UNPRINTABLE, '\uFFFD');
}

/** The same for a text of several lines. */
export function printableLines(text: string): string {
    return text.split('\n').map(printable).join('\n');
}

/** The same for a file that comes in pieces, texts or their UTF-8. */
export async function* printablePieces(pieces: AsyncIterable<Uint8Array | string>): AsyncGenerator<string, void, undefined> {
    const decoder = new TextDecoder();
    for await (const piece of pieces) {
        const text = typeof piece === 'string' ? piece : decoder.decode(piece, { stream: true });
        yield printableLines(text.replaceAll('\r\n', '\n'));
    }
}

/** JSON that is safe to print as well, and says the same: `JSON.stringify` leaves most of those characters as they are. */
export function jsonText(document: unknown, indent?: number): string {
    return printableJson(JSON.stringify(document, null, indent));
}

/** The same for JSON that is text already, or for lines of it: there a control character in a string is escaped, and a line feed ends a line. */
export function printableJson(text: string): string {
    return text.replace(UNPRINTABLE, (sign) => (sign === '\n' ? sign : `\\u${sign.charCodeAt(0).toString(16).padStart(4, '0')}`));
}
