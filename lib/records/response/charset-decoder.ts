import { TextDecoder } from 'node:util';
import { replaceCodePoint } from 'entities/decode';

/** Decodes text of one charset. Never throws; what is not of that charset becomes U+FFFD. */
export interface CharsetDecoder {
    /** The charset, as the Encoding Standard calls it. */
    readonly charset: string;
    decode(bytes: Uint8Array): string;
}

/** Of known labels only, none with white space around it, so there are not many. */
const decoders = new Map<string, CharsetDecoder>();

/** The decoder for a label of the Encoding Standard, in any case and without white space; null for one that nobody knows. */
export function charsetDecoder(label: string): CharsetDecoder | null {
    const name = label.toLowerCase();
    const known = decoders.get(name);
    if (known !== undefined) {
        return known;
    }

    try {
        const decoder = new TextDecoder(name);
        const { encoding: charset } = decoder;
        const made = { charset, decode: charset === 'windows-1252' ? decodeWindows1252 : (bytes: Uint8Array) => decoder.decode(bytes) };
        decoders.set(name, made);
        return made;
    } catch {
        return null;
    }
}

/** Node 20 takes windows-1252 for ISO-8859-1. Character references to these codes mean windows-1252, so there is a table already. */
function decodeWindows1252(bytes: Uint8Array): string {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
    return text.replace(/[\x80-\x9f]/g, (character) => String.fromCharCode(replaceCodePoint(character.charCodeAt(0))));
}
