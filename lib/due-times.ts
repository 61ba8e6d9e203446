import { afterWait } from './within.ts';

/** How often is looked whether something is due, in milliseconds. */
const LOOK = 250;

interface Waiting {
    readonly due: number;
    readonly giveUp: () => void;
}

/** Waits for promises until they are due, to a quarter of a second. One timer does for all: one for each takes a request as long as the look-up of its row. */
export class DueTimes {
    readonly #waiting = new Set<Waiting>();
    #isLooking = false;

    /**
     * The promise's own result, if it comes in time; what comes later is dropped, a rejection too.
     *
     * @param due As `performance.now()` has it.
     * @param late Makes the error of a promise that is late.
     */
    within<T>(promise: Promise<T>, due: number, late: () => Error): Promise<T> {
        return new Promise((resolve, reject) => {
            const waiting = { due, giveUp: () => reject(late()) };
            this.#waiting.add(waiting);
            this.#look();
            promise.then(
                (value) => {
                    this.#waiting.delete(waiting);
                    resolve(value);
                },
                (error: unknown) => {
                    this.#waiting.delete(waiting);
                    reject(error);
                },
            );
        });
    }

    #look(): void {
        if (this.#isLooking || this.#waiting.size === 0) {
            return;
        }

        this.#isLooking = true;
        afterWait(LOOK, () => {
            this.#isLooking = false;
            this.#giveUpLate();
            this.#look();
        });
    }

    #giveUpLate(): void {
        const now = performance.now();
        for (const waiting of this.#waiting) {
            if (waiting.due <= now) {
                this.#waiting.delete(waiting);
                waiting.giveUp();
            }
        }
    }
}
