import { afterWait } from './within.ts';

/** How often is looked whether something is due, in milliseconds. */
const LOOK = 250;

interface Waiting {
    readonly due: number;
    readonly giveUp: () => void;
    isOver: boolean;
}

/** Waits for promises until they are due, to a quarter of a second. One timer does for all: one for each takes a request as long as the look-up of its row. */
export class DueTimes {
    /** With those that are over, until is looked again. */
    #waiting: Waiting[] = [];
    #isLooking = false;

    /**
     * The promise's own result, if it comes in time; what comes later is dropped, a rejection too.
     *
     * @param due As `performance.now()` has it.
     * @param late Makes the error of a promise that is late.
     */
    within<T>(promise: Promise<T>, due: number, late: () => Error): Promise<T> {
        return new Promise((resolve, reject) => {
            const waiting: Waiting = { due, giveUp: () => reject(late()), isOver: false };
            this.#waiting.push(waiting);
            if (!this.#isLooking) {
                this.#lookLater();
            }
            promise.then(
                (value) => {
                    waiting.isOver = true;
                    resolve(value);
                },
                (error: unknown) => {
                    waiting.isOver = true;
                    reject(error);
                },
            );
        });
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
        const isDue = ({ due }: Waiting): boolean => due <= now;
        const open = this.#waiting.filter(({ isOver }) => !isOver);
        this.#waiting = open.filter((waiting) => !isDue(waiting));
        for (const { giveUp } of open.filter(isDue)) {
            giveUp();
        }
        if (this.#waiting.length > 0 && !this.#isLooking) {
            this.#lookLater();
        }
    }
}
