import type { HandedOut } from '../deliveries/delivery-store.ts';

/** Hands on the items that it is given in turns: one part of them after another, at even intervals. */
export interface Turns<Item> {
    /**
     * Hands on items evenly within so many milliseconds. What is left of an earlier call is handed on at once. @param every Minimum number of
     * milliseconds between two turns. 5 by default.
     */
    give(items: readonly Item[], milliseconds: number, every?: number): void;
    /** Hands on at once what is left. */
    end(): void;
}

/** Minimum number of milliseconds between two turns: several items together cost less. */
const TURN_EVERY = 5;

/** Turns for items that would be too much for one moment. */
function evenly<Item>(handOn: (items: readonly Item[]) => void): Turns<Item> {
    let left: readonly Item[] = [];
    let timer: NodeJS.Timeout | undefined;

    function turn(count: number): void {
        const [items, rest] = [left.slice(0, count), left.slice(count)];
        left = rest;
        if (rest.length === 0) {
            clearInterval(timer);
        }
        if (items.length > 0) {
            handOn(items);
        }
    }

    return {
        give(items, milliseconds, every = TURN_EVERY) {
            turn(left.length);
            const turns = Math.max(1, Math.min(items.length, Math.floor(milliseconds / every)));
            const each = Math.ceil(items.length / turns);
            left = items;
            timer = setInterval(() => turn(each), Math.floor(milliseconds / turns));
            turn(each);
        },

        end: () => turn(left.length),
    };
}

/** Adds jobs in the background: callers do not wait until they are added. */
export interface Adding {
    add(handedOut: readonly HandedOut[]): void;
    readonly addInTurns: Turns<HandedOut>['give'];
    /** Adds at once what waits for its turn; resolves when all has been added. */
    added(): Promise<void>;
}

/** Adds jobs by `enqueue`; what fails is reported. */
export function adding(enqueue: (handedOut: readonly HandedOut[]) => Promise<void>, onError: (error: Error) => void): Adding {
    const underWay = new Set<Promise<void>>();
    function add(handedOut: readonly HandedOut[]): void {
        const added = enqueue(handedOut)
            .catch(onError)
            .finally(() => underWay.delete(added));
        underWay.add(added);
    }

    const turns = evenly(add);
    return {
        add,
        addInTurns: turns.give,

        async added(): Promise<void> {
            turns.end();
            await Promise.all(underWay);
        },
    };
}
