import { createHash } from 'node:crypto';
import { setImmediate } from 'node:timers/promises';

/** To whom something happens: it does not happen any more once its process is dead, and only later while it stands still. */
export interface Owner {
    readonly name: string;
    readonly alive: boolean;
    /** Until then nothing of it goes on, in milliseconds. */
    readonly frozenUntil: number;
    /** How far its clock is ahead, in milliseconds. */
    readonly clockOffset: number;
}

interface Happening {
    at: number;
    readonly seq: number;
    readonly owner: Owner | null;
    readonly run: () => void;
    cancelled: boolean;
    /** As timers of Node have it. */
    unref(): Happening;
}

/** The date at which every simulation begins, in the store's time. */
export const START: number = Date.parse('2026-11-21T00:00:00Z');

/** How much of the end of a trace is kept for people to read. */
const TAIL = 5_000;

/** What goes on all the time and is of no interest for people. */
const ROUTINE = /^(?:store\.(?:attempts|dispatch|sweep|keepAlive|advance)|queue\.hasLostJobs)$/;

/**
 * The time of a simulation, in milliseconds since it began, and all that is going to happen. One thing happens at a time, with all that
 * follows from it without time, so that the order is the same each time.
 */
export class Timeline {
    now = 0;
    /** Whose code runs. */
    owner: Owner | null = null;
    private seq = 0;
    private readonly heap: Happening[] = [];
    /** Real work, of the database, that the simulation waits for. */
    private busy = 0;
    private readonly hash = createHash('sha256');
    private readonly lines: string[] = [];
    private size = 0;
    private told = false;

    /** Lets something happen later. It is the business of who runs now, unless told otherwise. */
    after(milliseconds: number, run: () => void, owner: Owner | null = this.owner): Happening {
        const happening: Happening = {
            at: this.now + Math.max(0, Math.floor(milliseconds)),
            seq: this.seq++,
            owner,
            run,
            cancelled: false,
            unref: () => happening,
        };
        this.push(happening);
        return happening;
    }

    /** Writes a line of the trace. */
    note(what: string): void {
        const line = `${this.now.toFixed(0)} ${this.owner?.name ?? '-'} ${what}`;
        this.hash.update(`${line}\n`);
        this.size += 1;
        if (!ROUTINE.test(what) && !this.told) {
            this.lines.push(line);
        }
        if (this.lines.length > 2 * TAIL) {
            this.lines.splice(0, TAIL);
        }
    }

    /** The story has come to its point: what follows is not kept for people. */
    endTail(): void {
        this.told = true;
    }

    /** What has been noted: equal for equal traces. Ends the trace. */
    digest(): string {
        return `${this.hash.digest('hex')} of ${this.size} lines`;
    }

    /** The last lines that are of interest. */
    tail(): readonly string[] {
        return this.lines;
    }

    /** Real work that must have ended before anything else happens. */
    async real<T>(work: () => Promise<T>): Promise<T> {
        this.busy += 1;
        try {
            return await work();
        } finally {
            this.busy -= 1;
        }
    }

    /** Lets time pass. */
    async advance(milliseconds: number): Promise<void> {
        const end = this.now + Math.max(0, milliseconds);
        await this.settle();
        for (let next = this.heap[0]; next !== undefined && next.at <= end; next = this.heap[0]) {
            this.pop();
            if (next.cancelled || next.owner?.alive === false) {
                continue;
            }
            if (next.owner !== null && next.owner.frozenUntil > next.at) {
                next.at = next.owner.frozenUntil;
                this.push(next);
                continue;
            }

            this.now = next.at;
            this.owner = next.owner;
            perform(next);
            await this.settle();
            this.owner = null;
        }
        this.now = end;
    }

    /** Lets time pass until something holds, at most so many milliseconds. Whether it did. */
    async until(holds: () => boolean | Promise<boolean>, atMost: number, step: number): Promise<boolean> {
        for (const end = this.now + atMost; !(await holds()); ) {
            if (this.now >= end) {
                return false;
            }
            await this.advance(step);
        }
        return true;
    }

    /**
     * Runs with the clocks and timers of this process replaced by those of the simulation. What is real and waits for the network or the disk
     * must not use them meanwhile.
     */
    async inPlaceOfTimers<T>(run: () => Promise<T>): Promise<T> {
        const { setTimeout, clearTimeout, setInterval, clearInterval } = globalThis;
        const machine = { date: Date.now, performance: performance.now };
        const clear = (timer: Happening | undefined): void => {
            if (timer !== undefined) {
                timer.cancelled = true;
            }
        };
        Object.assign(globalThis, {
            setTimeout: (act: () => void, delay: number) => this.after(delay, act),
            clearTimeout: clear,
            setInterval: (act: () => void, every: number) => this.every(every, act),
            clearInterval: clear,
        });
        Date.now = () => START + this.now + (this.owner?.clockOffset ?? 0);
        performance.now = () => this.now;
        try {
            return await run();
        } finally {
            Object.assign(globalThis, { setTimeout, clearTimeout, setInterval, clearInterval });
            Date.now = machine.date;
            performance.now = machine.performance;
        }
    }

    private every(milliseconds: number, act: () => void): Happening {
        const timer = this.after(milliseconds, () => {
            timer.at = this.now + milliseconds;
            this.push(timer);
            act();
        });
        return timer;
    }

    /** All that follows without time is microtasks, but for what the database does. */
    private async settle(): Promise<void> {
        do {
            await setImmediate();
        } while (this.busy > 0);
    }

    private push(happening: Happening): void {
        const { heap } = this;
        let index = heap.push(happening) - 1;
        while (index > 0) {
            const parent = (index - 1) >> 1;
            if (!this.earlier(index, parent)) {
                return;
            }
            this.swap(index, parent);
            index = parent;
        }
    }

    private pop(): void {
        const { heap } = this;
        const last = heap.pop();
        if (last === undefined || heap.length === 0) {
            return;
        }

        heap[0] = last;
        for (let index = 0; ; ) {
            const [left, right] = [2 * index + 1, 2 * index + 2];
            let first = left < heap.length && this.earlier(left, index) ? left : index;
            first = right < heap.length && this.earlier(right, first) ? right : first;
            if (first === index) {
                return;
            }
            this.swap(index, first);
            index = first;
        }
    }

    private earlier(a: number, b: number): boolean {
        const [one, other] = [this.heap[a] as Happening, this.heap[b] as Happening];
        return one.at < other.at || (one.at === other.at && one.seq < other.seq);
    }

    private swap(a: number, b: number): void {
        const { heap } = this;
        [heap[a], heap[b]] = [heap[b] as Happening, heap[a] as Happening];
    }
}

/** Runs what happens now. Where its process dies at a look at its clock, the error that ends what it was doing is nobody's. */
function perform({ run, owner }: Happening): void {
    try {
        run();
    } catch (error) {
        if (owner === null || owner.alive) {
            throw error;
        }
    }
}
