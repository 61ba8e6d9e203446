import type { Dispatched } from '../deliveries/delivery-store.ts';

/** Hands on what it gets in turns. */
export interface Turns<Item> {
    /** Evenly within so many milliseconds; what is left of an earlier call at once. @param every The least between two turns; 5 unless it is given. */
    give(items: readonly Item[], milliseconds: number, every?: number): void;
    /** What is left, at once. */
    end(): void;
}

/** The least milliseconds between two turns: together, several are cheaper. */
const TURN_EVERY = 5;

/** Turns of what would be too much for one moment. */
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

/** What adds jobs that nobody waits for. */
export interface Adding {
    add(handedOut: readonly Dispatched[]): void;
    readonly addInTurns: Turns<Dispatched>['give'];
    /** Resolves once all has been added; what waits for its turn is at once. */
    added(): Promise<void>;
}

/** Adds jobs by `enqueue`; what fails is reported. */
export function adding(enqueue: (handedOut: readonly Dispatched[]) => Promise<void>, onError: (error: Error) => void): Adding {
    const underWay = new Set<Promise<void>>();
    function add(handedOut: readonly Dispatched[]): void {
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
