/** What is there already, or will be: a store that has its rows in memory need not promise them. */
export type Eventual<T> = T | Promise<T>;

/** Whether a value is yet to come, by a promise of whatever kind. */
export function isComing<T>(value: Eventual<T>): value is Promise<T> {
    return typeof value === 'object' && value !== null && typeof (value as { readonly then?: unknown }).then === 'function';
}

/** What `next` makes of a value: at once where that is there. A promise takes a request about as long as the look-up of its row. */
export function whenThere<T, Next>(value: Eventual<T>, next: (value: T) => Eventual<Next>): Eventual<Next> {
    return isComing(value) ? value.then(next) : next(value);
}
