import type { FoundValues } from './found-values.ts';

/** Looks for several texts in what was found in bodies. */
export interface TextSearch {
    /** @param part One of the texts of the search. */
    isIn(part: string, found: FoundValues): boolean;
}

/**
 * Up to so many characters to search, times those to look for, each text is looked for by itself. That is quicker for usual bodies, but for texts that
 * almost match at every place it takes as many steps as this product; beyond it all are looked for at once.
 */
const ONE_BY_ONE = 1_000_000;

/** @param parts Texts of at least one character. */
export function textSearch(parts: readonly string[]): TextSearch {
    const length = parts.reduce((sum, part) => sum + part.length, 0);
    const present = new WeakMap<FoundValues, ReadonlySet<string>>();
    let searchAll: SearchAll | undefined;
    return {
        isIn(part, found) {
            if (length * found.textLength <= ONE_BY_ONE) {
                return found.texts.some((text) => text.includes(part));
            }

            searchAll ??= automatonOf(parts);
            const inIt = present.get(found) ?? searchAll(found.texts);
            present.set(found, inIt);
            return inIt.has(part);
        },
    };
}

/** Which parts are in any of the texts. */
type SearchAll = (texts: readonly string[]) => ReadonlySet<string>;

/**
 * The automaton of Aho and Corasick: a tree of the parts, each of whose nodes knows the node of the longest other beginning of a part that ends where
 * it ends. It takes a few steps for each character that is searched, whatever the parts and the texts.
 */
function automatonOf(parts: readonly string[]): SearchAll {
    const sorted = [...new Set(parts)].sort();
    // Nodes are numbered level by level, so that the children of a node follow each other, in the order of their characters; 0 is the root.
    const nodes: { readonly from: number; readonly to: number; readonly depth: number }[] = [{ from: 0, to: sorted.length, depth: 0 }];
    const codes: number[] = [0];
    const shorter: number[] = [0];
    const firstChild: number[] = [];
    const wholes = new Map<number, string>();

    function childOf(node: number, code: number): number {
        let [from, to] = [firstChild[node] as number, firstChild[node + 1] as number];
        const end = to;
        while (from < to) {
            const middle = (from + to) >>> 1;
            if ((codes[middle] as number) < code) {
                from = middle + 1;
            } else {
                to = middle;
            }
        }
        return from < end && codes[from] === code ? from : 0;
    }

    function next(before: number, code: number): number {
        let node = before;
        let child = childOf(node, code);
        while (child === 0 && node !== 0) {
            node = shorter[node] as number;
            child = childOf(node, code);
        }
        return child;
    }

    for (const [node, { from, to, depth }] of nodes.entries()) {
        firstChild.push(nodes.length);
        const whole = sorted[from] as string;
        let first = from;
        if (whole.length === depth) {
            wholes.set(node, whole);
            first += 1;
        }
        while (first < to) {
            const code = (sorted[first] as string).charCodeAt(depth);
            let after = first + 1;
            while (after < to && (sorted[after] as string).charCodeAt(depth) === code) {
                after += 1;
            }
            nodes.push({ from: first, to: after, depth: depth + 1 });
            codes.push(code);
            shorter.push(node === 0 ? 0 : next(shorter[node] as number, code));
            first = after;
        }
    }
    firstChild.push(nodes.length);

    return (texts) => {
        const present = new Set<string>();
        const seen = new Uint8Array(nodes.length);
        for (const text of texts) {
            let node = 0;
            for (let index = 0; index < text.length; index += 1) {
                node = next(node, text.charCodeAt(index));
                for (let ended = node; seen[ended] === 0; ended = shorter[ended] as number) {
                    seen[ended] = 1;
                    const whole = wholes.get(ended);
                    if (whole !== undefined) {
                        present.add(whole);
                    }
                }
            }
        }
        return present;
    };
}
