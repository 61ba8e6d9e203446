/** What a pace of refusals needs to know of the time. */
export interface Pacing {
    /** Milliseconds that only go forward. */
    readonly now: () => number;
    /** Calls back after so many milliseconds. */
    readonly later: (act: () => void, milliseconds: number) => void;
}

/** Refusals a second, and how many come at once after a pause: far more than people and programs with a wrong key need. */
export const PER_SECOND = 200;
const AT_ONCE = 50;
/** Refusals that wait for their turn, each with its request; beyond, the connection is worth no more. */
export const MAX_WAITING = 1_024;
/** Between two looks at those that wait, in milliseconds. */
const STEP = 20;

const MACHINE: Pacing = {
    now: () => performance.now(),
    later: (act, milliseconds) => void setTimeout(act, milliseconds).unref(),
};

interface Waiting {
    readonly isThere: () => boolean;
    readonly go: (turn: boolean) => void;
}

/**
 * Lets so many refusals of keys through in a second and no more, one after the other. Whoever sends more waits for answers, with as many
 * requests as a connection may have unanswered, and so sends less: a flood gets no more of the process than that, and leaves the rest to
 * those who have a key.
 */
export class Refusals {
    readonly #pacing: Pacing;
    readonly #waiting: Waiting[] = [];
    #free = AT_ONCE;
    #since: number;
    #isLooking = false;

    constructor(pacing: Pacing = MACHINE) {
        this.#pacing = pacing;
        this.#since = pacing.now();
    }

    /**
     * Resolves when it is the turn of a refusal; with false at once where too many wait already.
     *
     * @param isThere Whether somebody still waits for the answer: nobody else waits for the turn of who has left.
     */
    async turn(isThere: () => boolean): Promise<boolean> {
        this.#refill();
        if (this.#waiting.length === 0 && this.#free >= 1) {
            this.#free -= 1;
            return true;
        }

        if (this.#waiting.length >= MAX_WAITING) {
            return false;
        }

        const turn = new Promise<boolean>((go) => this.#waiting.push({ isThere, go }));
        this.#look();
        return await turn;
    }

    #refill(): void {
        const now = this.#pacing.now();
        this.#free = Math.min(AT_ONCE, this.#free + ((now - this.#since) * PER_SECOND) / 1000);
        this.#since = now;
    }

    #look(): void {
        if (this.#isLooking || this.#waiting.length === 0) {
            return;
        }

        this.#isLooking = true;
        this.#pacing.later(() => {
            this.#isLooking = false;
            this.#refill();
            this.#letThrough();
            this.#look();
        }, STEP);
    }

    #letThrough(): void {
        let taken = 0;
        for (const { isThere, go } of this.#waiting) {
            const waits = isThere();
            if (waits && this.#free < 1) {
                break;
            }

            this.#free -= waits ? 1 : 0;
            taken += 1;
            go(true);
        }
        this.#waiting.splice(0, taken);
    }
}
