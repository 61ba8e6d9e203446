import { afterWait } from './within.ts';

/** How often is looked whether something is due, in milliseconds. */
const LOOK = 250;

interface Waiting {
    readonly due: number;
    readonly giveUp: () => void;
    /** Its place among those that wait. */
    at: number;
}

/** Waits for promises until they are due, to a quarter of a second. One timer does for all: one for each takes a request as long as the look-up of its row. */
export class DueTimes {
    /** In no order. What is over goes at once: what was kept of each until the next look would outlive the collection of what is young. */
    readonly #waiting: Waiting[] = [];
    #isLooking = false;

    /**
     * The promise's own result, if it comes in time; what comes later is dropped, a rejection too.
     *
     * @param due As `performance.now()` has it.
     * @param late Makes the error of a promise that is late.
     */
    within<T>(promise: Promise<T>, due: number, late: () => Error): Promise<T> {
        return new Promise((resolve, reject) => {
            const waiting: Waiting = { due, giveUp: () => reject(late()), at: this.#waiting.length };
            this.#waiting.push(waiting);
            if (!this.#isLooking) {
                this.#lookLater();
            }
            promise.then(
                (value) => {
                    this.#remove(waiting);
                    resolve(value);
                },
                (error: unknown) => {
                    this.#remove(waiting);
                    reject(error);
                },
            );
        });
    }

    /** Puts the last one into its place. One that was given up is there no more. */
    #remove(waiting: Waiting): void {
        if (this.#waiting[waiting.at] === waiting) {
            const last = this.#waiting.pop() as Waiting;
            if (last !== waiting) {
                this.#waiting[waiting.at] = last;
                last.at = waiting.at;
            }
        }
    }

    #lookLater(): void {
        this.#isLooking = true;
        afterWait(LOOK, () => {
            this.#isLooking = false;
            this.#look();
        });
    }

    #look(): void {
        const now = performance.now();
        for (const waiting of this.#waiting.filter(({ due }) => due <= now)) {
            this.#remove(waiting);
            waiting.giveUp();
        }
        if (this.#waiting.length > 0 && !this.#isLooking) {
            this.#lookLater();
        }
    }
}
