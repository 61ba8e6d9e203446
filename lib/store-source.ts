/** What stores have in common: those over one pool read one database, and share its connections and the memory of this process. */

/** A symbol, so that a store that an application makes of one of ours by `{ ...store }` keeps it. */
const SOURCE = Symbol('source');

interface Sourced {
    readonly [SOURCE]?: object;
}

/** Marks a store as one that reads from a source, a pool in most cases. */
export function readingFrom<Store extends object>(source: object, store: Store): Store {
    return Object.assign(store, { [SOURCE]: source });
}

/** What a store reads from: the same object for all stores over one pool, the store itself where it says nothing. */
export function sourceOf(store: object): object {
    return (store as Sourced)[SOURCE] ?? store;
}
