/** What has been read of a text, as far as it may belong to a needle: the longest end of it with which a needle begins. */
export interface Reached {
    /** How many characters that end has. */
    readonly length: number;
    /** The length of the longest needle that begins with it. */
    readonly longest: number;
    /** The next shorter end with which a needle begins; null for the empty one. */
    readonly shorter: Reached | null;
    /** The longest needle with which that end itself ends, or which it is; null where there is none. */
    readonly needle: Reached | null;
}

/** Texts that are looked for all at once. */
export interface Needles {
    /** Where a look begins. */
    readonly start: Reached;
    /** What has been reached by one more character, given as its UTF-16 code unit. */
    next(reached: Reached, unit: number): Reached;
}

interface Node extends Reached {
    readonly id: number;
    readonly unit: number;
    readonly parent: Node | null;
    longest: number;
    isNeedle: boolean;
    shorter: Node | null;
    needle: Node | null;
}

/**
 * Looks for all of these texts together, by the automaton of Aho and Corasick: a look takes a time that depends on the length of what is looked
 * through, however many needles there are, and however they overlap.
 *
 * @param needles None is empty.
 */
export function lookFor(needles: readonly string[]): Needles {
    const start = newNode(0, 0, null);
    /** All others, by their lengths. */
    const levels: Node[][] = [];
    const children = new Map<number, Node>();
    const keyOf = ({ id }: Node, unit: number): number => id * 65_536 + unit;

    function next(from: Node, unit: number): Node {
        for (let node: Node | null = from; node !== null; node = node.shorter) {
            const child = children.get(keyOf(node, unit));
            if (child !== undefined) {
                return child;
            }
        }
        return start;
    }

    function childOf(parent: Node, unit: number): Node {
        const key = keyOf(parent, unit);
        const known = children.get(key);
        if (known !== undefined) {
            return known;
        }

        const child = newNode(children.size + 1, unit, parent);
        children.set(key, child);
        const level = levels[parent.length] ?? [];
        level.push(child);
        levels[parent.length] = level;
        return child;
    }

    for (const needle of needles) {
        let node = start;
        for (let at = 0; at < needle.length; at += 1) {
            node = childOf(node, needle.charCodeAt(at));
            node.longest = Math.max(node.longest, needle.length);
        }
        node.isNeedle = true;
    }
    // The shorter ones first, since the longer ones refer to them.
    for (const node of levels.flat()) {
        const before = node.parent?.shorter ?? null;
        node.shorter = before === null ? start : next(before, node.unit);
        node.needle = node.isNeedle ? node : node.shorter.needle;
    }
    return { start, next: (reached, unit) => next(reached as Node, unit) };
}

function newNode(id: number, unit: number, parent: Node | null): Node {
    const length = parent === null ? 0 : parent.length + 1;
    return { id, unit, parent, length, longest: 0, isNeedle: false, shorter: null, needle: null };
}
