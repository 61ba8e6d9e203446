import { recordSchema } from '../../lib/records/index.ts';

/** What the reader must say of a line. */
export interface ReferenceLine {
    readonly line: number;
    readonly byteOffset: number;
    readonly ok: boolean;
}

/** The rules of reading, written down as plainly as they can be: the whole file at once, and Joi. */
export function referenceLines(file: Buffer, maxLineBytes: number): ReferenceLine[] {
    const lines: ReferenceLine[] = [];
    let byteOffset = 0;
    for (const [index, raw] of file.toString('latin1').split('\n').entries()) {
        const bytes = Buffer.from(raw.replace(/\r$/, ''), 'latin1');
        const text = bytes.toString().replace(index === 0 ? /^\uFEFF/ : /$^/, '');
        if (bytes.length > maxLineBytes || /[^ \t\r]/.test(text)) {
            lines.push({ line: index + 1, byteOffset, ok: bytes.length <= maxLineBytes && isRecord(bytes, text) });
        }

        byteOffset += raw.length + 1;
    }

    return lines;
}

function isRecord(bytes: Buffer, text: string): boolean {
    try {
        const value = JSON.parse(text) as object;
        const isUtf8 = Buffer.from(bytes.toString()).equals(bytes);
        return isUtf8 && recordSchema.validate(value).error === undefined && !hidesKeys(text, value);
    } catch {
        return false;
    }
}

/** In a record nothing but a repeated key or `__proto__` gets lost between parsing and writing, apart from the way it is written. */
function hidesKeys(text: string, value: object): boolean {
    const keys = [...text.matchAll(/"((?:[^"\\]|\\.)*)"\s*:/gs)].map(([, key]) => JSON.parse(`"${key}"`) as string);
    const { subject } = value as { subject?: object };
    return keys.length !== Object.keys(value).length + Object.keys(subject ?? {}).length || keys.includes('__proto__');
}
