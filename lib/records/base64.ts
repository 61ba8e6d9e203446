/** Text is decoded in parts into one scratch buffer, so that nothing is allocated. A multiple of 4 characters. */
const PART = 65_536;
const scratch = Buffer.allocUnsafeSlow((PART / 4) * 3);

/** Whether a text is base64 of RFC 4648, section 4: standard alphabet, padded, nothing else between. */
export function isBase64(text: string): boolean {
    return Buffer.byteLength(text) === text.length && isBase64Latin1(text);
}

/**
 * The same for a text without characters beyond Latin-1, of which Node's decoder would see the low byte only. Decides at the
 * speed of that decoder, which passes over what it does not know: what comes out short had something in it that does not belong.
 */
export function isBase64Latin1(text: string): boolean {
    if (!isStandard(text)) {
        return false;
    }

    for (let at = 0; at < text.length; at += PART) {
        const part = text.length <= PART ? text : text.slice(at, at + PART);
        const padding = at + PART < text.length ? 0 : paddingOf(text);
        if (scratch.write(part, 'base64') !== (part.length / 4) * 3 - padding) {
            return false;
        }
    }

    return true;
}

/** The bytes of such a text; null when it is not base64. */
export function base64Bytes(text: string): Buffer | null {
    if (!isStandard(text)) {
        return null;
    }

    const bytes = Buffer.allocUnsafe((text.length / 4) * 3 - paddingOf(text));
    return bytes.write(text, 'base64') === bytes.length ? bytes : null;
}

/** The decoder takes the URL-safe alphabet as well. */
function isStandard(text: string): boolean {
    return text.length % 4 === 0 && !text.includes('-') && !text.includes('_');
}

function paddingOf(text: string): number {
    return text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
}
