/** What a pace of refusals needs to know of the time. */
export interface Pacing {
    /** Milliseconds that only go forward. */
    readonly now: () => number;
    /** Calls back after so many milliseconds; after 0 once the event loop has asked what else there is to do. */
    readonly later: (act: () => void, milliseconds: number) => void;
}

/** Refusals a second, which take about half of a core: far more than people and programs with a wrong key need. */
export const PER_SECOND = 6_000;
/** How many of them after a pause. */
const AFTER_PAUSE = 200;
/** Refusals in a turn of the event loop: what others have asked for meanwhile is handled between two turns. */
export const IN_TURN = 4;
/** Refusals that wait for their turn, each with its request; beyond, the connection is worth no more. */
export const MAX_WAITING = 1_024;
/** Until those that wait are looked at where a second has had all of its refusals, in milliseconds. */
const STEP = 20;

const MACHINE: Pacing = {
    now: () => performance.now(),
    later: (act, milliseconds) => void (milliseconds === 0 ? setImmediate(act) : setTimeout(act, milliseconds).unref()),
};

interface Waiting {
    readonly isThere: () => boolean;
    readonly go: (turn: boolean) => void;
}

/**
 * Lets refusals of keys through a few in each turn of the event loop, so many in a second and no more. A flood comes in pieces of hundreds of
 * requests: answered in one go they would keep everybody else waiting. To hold them back costs more than to answer them, since strangers
 * come back over new connections; yet a flood gets no more of the process than that, and leaves the rest to those who have a key.
 */
export class Refusals {
    readonly #pacing: Pacing;
    readonly #waiting: Waiting[] = [];
    #free = AFTER_PAUSE;
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
        if (this.#waiting.length >= MAX_WAITING) {
            return false;
        }

        const turn = new Promise<boolean>((go) => this.#waiting.push({ isThere, go }));
        this.#look();
        return await turn;
    }

    #refill(): void {
        const now = this.#pacing.now();
        this.#free = Math.min(AFTER_PAUSE, this.#free + ((now - this.#since) * PER_SECOND) / 1000);
        this.#since = now;
    }

    #look(): void {
        if (this.#isLooking || this.#waiting.length === 0) {
            return;
        }

        this.#isLooking = true;
        this.#refill();
        const act = (): void => {
            this.#isLooking = false;
            this.#refill();
            this.#letThrough();
            this.#look();
        };
        this.#pacing.later(act, this.#free < 1 ? STEP : 0);
    }

    #letThrough(): void {
        let taken = 0;
        let refused = 0;
        for (const { isThere, go } of this.#waiting) {
            const waits = isThere();
            if (waits && (this.#free < 1 || refused === IN_TURN)) {
                break;
            }

            if (waits) {
                this.#free -= 1;
                refused += 1;
            }
            taken += 1;
            go(true);
        }
        this.#waiting.splice(0, taken);
    }
}
