import { wakeUps } from '../within.ts';

/** So many bytes that may be held at once, for one that takes and any number that give back. */
export interface ByteBudget {
    /** Resolves with the number of bytes that are free, as soon as they are at least so many or nothing is held. */
    free(atLeast: number): Promise<number>;
    take(bytes: number): void;
    /** Takes them only if no more than half are taken then: the other half is for who waits. */
    tryTake(bytes: number): boolean;
    giveBack(bytes: number): void;
}

/** A budget of `limit` bytes. What is taken beyond them delays who waits for free ones, and is no error. */
export function byteBudget(limit: number): ByteBudget {
    const { wake, change } = wakeUps();
    let held = 0;

    return {
        async free(atLeast) {
            while (held > 0 && limit - held < atLeast) {
                await change();
            }
            return limit - held;
        },

        take(bytes) {
            held += bytes;
        },

        tryTake(bytes) {
            const fits = held + bytes <= limit / 2;
            held += fits ? bytes : 0;
            return fits;
        },

        giveBack(bytes) {
            held -= bytes;
            wake();
        },
    };
}
