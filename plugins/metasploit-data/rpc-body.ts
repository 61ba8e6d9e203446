/** The body of a call of JSON-RPC, with the id that its answer has. */
import { jsonText } from '../../lib/printable.ts';

/** A body that is JSON. */
export interface RpcBody {
    readonly value: unknown;
    /** The id as it was written: clients make up ids of 63 bits, of which a number here keeps 53. `null` where there is none, or none that an id may be. */
    readonly id: string;
}

/** Null for what is no JSON. */
export function rpcBody(text: string): RpcBody | null {
    let value: unknown;
    try {
        value = JSON.parse(text);
    } catch {
        return null;
    }

    const { id } = Object(value) as { readonly id?: unknown };
    if (typeof id === 'number' && !Number.isSafeInteger(id)) {
        return { value, id: writtenId(text) };
    }
    return { value, id: typeof id === 'number' || typeof id === 'string' ? jsonText(id) : 'null' };
}

/** A string, a bracket, a comma, a colon or a word, which is a number too. */
const TOKEN = /"(?:[^"\\]|\\.)*"|[[\]{},:]|[^\s"[\]{},:]+/gs;

/** The value of the last `id` of an object that is JSON, as `JSON.parse` takes it, in its own characters. */
function writtenId(text: string): string {
    let depth = 0;
    let written = 'null';
    let [key, last] = ['', ''];
    for (const [token] of text.matchAll(TOKEN)) {
        if (token === '{' || token === '[') {
            depth += 1;
        } else if (token === '}' || token === ']') {
            depth -= 1;
        } else if (token === ':' && depth === 1) {
            key = JSON.parse(last) as string;
        } else if (last === ':' && key === 'id') {
            written = token;
        }
        last = token;
    }
    return written;
}
