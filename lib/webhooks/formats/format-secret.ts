import type { KeyRing, SealedText } from '../../keys/key-ring.ts';
import type { StoredExporter } from '../exporters/exporter.ts';

/** The secret of a format, sealed for an exporter. */
export function sealFormatSecret(id: string, secret: string, keyRing: KeyRing): string {
    return keyRing.seal(secret, contextOf(id));
}

/** The sealed secret of an exporter's format: one text, or none. */
export function sealedFormatSecret({ id, sealedFormatSecret: sealed }: StoredExporter): readonly SealedText[] {
    return sealed === null ? [] : [{ sealed, context: contextOf(id) }];
}

function contextOf(exporterId: string): string {
    return `exporter:${exporterId}:format`;
}

/**
 * Stands for the format's secret in a stored body: the control character "substitute". In JSON that character is always escaped, so that no text
 * of an event can be taken for it.
 */
export const SECRET_PLACEHOLDER = '\u001a';

const MASK = '********';

const PLACEHOLDER_BYTE = SECRET_PLACEHOLDER.charCodeAt(0);

/** Whether the secret of a format is to be put into a body. In what is no JSON the character may be the event's own. */
export function hasFormatSecret(contentType: string, body: Uint8Array): boolean {
    return contentType.includes('json') && body.includes(PLACEHOLDER_BYTE);
}

/** The bytes that are signed and sent: the stored ones with the secret in its place. Other bodies stay as they are. */
export function withFormatSecret(body: Uint8Array, secret: string): Uint8Array {
    return substituted(body, JSON.stringify(secret).slice(1, -1));
}

/** The bytes as people may see them: asterisks stand for the secret. */
export function withMaskedSecret(body: Uint8Array): Uint8Array {
    return substituted(body, MASK);
}

function substituted(body: Uint8Array, text: string): Uint8Array {
    const parts: Uint8Array[] = [];
    const between = Buffer.from(text);
    let begin = 0;
    for (let at = body.indexOf(PLACEHOLDER_BYTE); at !== -1; at = body.indexOf(PLACEHOLDER_BYTE, begin)) {
        parts.push(body.subarray(begin, at), between);
        begin = at + 1;
    }

    return parts.length === 0 ? body : Buffer.concat([...parts, body.subarray(begin)]);
}
