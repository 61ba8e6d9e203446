import { createHash } from 'node:crypto';
import { ScanwireError } from '../errors.ts';

/** Remembers the messages that were verified for as long as their time would let them in again. */
export interface ReplayCache {
    /**
     * Whether this try of a message comes for the first time, as far as can be told; from now on it has come.
     *
     * @param id `webhook-id`.
     * @param time When the try was signed, in whole seconds: another try of the same message has another time.
     * @param oldest What was signed before is refused by its time, and need not be remembered.
     */
    isNew(id: string, time: Date, oldest: Date): boolean;
}

/** How much a {@link ReplayCache} remembers. */
export interface ReplayCacheOptions {
    /** Messages that are remembered at once, about 100 bytes each where ten or more come in a second, 265 where one does; 100,000 by default. */
    readonly max?: number | undefined;
}

const MAX = 100_000;

/**
 * A cache for {@link verify}, in the memory of this process; one for each sender, as what one sends in excess is at the expense of all. Only
 * messages that were verified get in. When there are more than `max` within the tolerance, the oldest are forgotten and whatever is as old
 * as them is refused from then on: no replay gets through, and the sender signs its next try again.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `max`.
 */
export function replayCache({ max = MAX }: ReplayCacheOptions = {}): ReplayCache {
    if (!Number.isSafeInteger(max) || max < 1) {
        throw new ScanwireError('MISCONFIGURED', 'replayCache options: max must be a whole number of at least 1', { field: 'max' });
    }

    return new Remembered(max);
}

class Remembered implements ReplayCache {
    readonly #max: number;
    /** Digests of the ids by the second of their messages, of which there are as many at most as the tolerance has on both sides of now. */
    readonly #bySecond = new Map<number, Set<string>>();
    #size = 0;
    /** None of those seconds is before. It is looked for from here on, second by second, as a look through all of them would take too long for each message. */
    #oldest = Number.POSITIVE_INFINITY;
    #sweptAt = Number.NEGATIVE_INFINITY;
    /** Of messages up to this second it is no longer known whether they came. */
    #forgotten = Number.NEGATIVE_INFINITY;

    constructor(max: number) {
        this.#max = max;
    }

    isNew(id: string, time: Date, oldest: Date): boolean {
        this.#sweep(Math.ceil(oldest.getTime() / 1000));
        const second = Math.floor(time.getTime() / 1000);
        if (!(second > this.#forgotten)) {
            return false;
        }

        // Ids are as long as a header may be.
        const digest = createHash('sha256').update(id).digest('base64');
        const digests = this.#bySecond.get(second) ?? new Set();
        if (digests.has(digest)) {
            return false;
        }

        this.#bySecond.set(second, digests.add(digest));
        this.#size += 1;
        this.#oldest = Math.min(this.#oldest, second);
        if (this.#size > this.#max) {
            this.#forgetOldest();
        }

        return true;
    }

    /** Forgets what is older; once a second, since it looks at every second that is remembered. */
    #sweep(oldest: number): void {
        if (oldest === this.#sweptAt) {
            return;
        }

        this.#sweptAt = oldest;
        for (const second of this.#bySecond.keys()) {
            if (second < oldest) {
                this.#forget(second);
            }
        }

        if (oldest > this.#oldest) {
            this.#oldest = oldest;
        }
    }

    #forgetOldest(): void {
        while (!this.#bySecond.has(this.#oldest)) {
            this.#oldest += 1;
        }
        this.#forget(this.#oldest);
    }

    #forget(second: number): void {
        this.#size -= this.#bySecond.get(second)?.size ?? 0;
        this.#bySecond.delete(second);
        this.#forgotten = Math.max(this.#forgotten, second);
    }
}
