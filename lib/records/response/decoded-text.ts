import { isAscii, isUtf8 } from 'node:buffer';
import { charsetDecoder } from './charset-decoder.ts';

/** Charsets in which ASCII is ASCII, as nearly all text is. */
const USUAL: readonly (string | null)[] = [null, 'utf-8', 'windows-1252'];

/** Text whose charset nobody names is UTF-8 if it can be. */
export function decodedText(bytes: Buffer, charset: string | null): string {
    if (USUAL.includes(charset) && isAscii(bytes)) {
        return bytes.toString('latin1');
    }

    return charsetDecoder(charset ?? (isUtf8(bytes) ? 'utf-8' : 'windows-1252'))?.decode(bytes) ?? '';
}
