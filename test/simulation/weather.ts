import { ScanwireError } from '../../lib/errors.ts';
import type { Timeline } from './timeline.ts';

/** What can be wrong with a part of the deployment. */
export const STORE_FAULTS = ['refuses', 'loses answers', 'is slow', 'is silent'] as const;
export const QUEUE_FAULTS = ['refuses', 'loses jobs', 'repeats jobs', 'delays jobs'] as const;
export const RESOLVER_FAULTS = ['is silent', 'is slow', 'knows no name'] as const;

export type StoreFault = (typeof STORE_FAULTS)[number];
/** Not for long enough that a claim which came with a job has ended: of no interest by itself. */
export type QueueFault = (typeof QUEUE_FAULTS)[number] | 'delays jobs a little';
export type ResolverFault = (typeof RESOLVER_FAULTS)[number];

interface Spell<Fault> {
    readonly fault: Fault;
    readonly until: number;
    /** Where the processes run that see it; null for everywhere. */
    readonly place: string | null;
}

/** How long a statement is waited for before it counts as lost. Milliseconds; less than the 25 s of `adapters/postgres`, for its stores to be told first. */
const PATIENCE = 12_000;

/** The faults of the parts that a process depends on, each for a time. */
export class Weather {
    private store: Spell<StoreFault> | null = null;
    private queue: Spell<QueueFault> | null = null;
    private resolver: Spell<ResolverFault> | null = null;
    /** Until when the last call to the store that went wrong may have taken, by the name of the process. */
    readonly troubled: Map<string, number> = new Map();
    private readonly timeline: Timeline;

    constructor(timeline: Timeline) {
        this.timeline = timeline;
    }

    changeStore(fault: StoreFault, milliseconds: number, place: string | null): void {
        this.store = { fault, until: this.timeline.now + milliseconds, place };
    }

    changeQueue(fault: QueueFault, milliseconds: number, place: string | null): void {
        this.queue = { fault, until: this.timeline.now + milliseconds, place };
    }

    changeResolver(fault: ResolverFault, milliseconds: number): void {
        this.resolver = { fault, until: this.timeline.now + milliseconds, place: null };
    }

    /** Nothing is wrong any more. */
    clear(): void {
        this.store = null;
        this.queue = null;
        this.resolver = null;
    }

    ofStore(process: string): StoreFault | null {
        const fault = this.seenBy(this.store, process);
        if (fault !== null) {
            const until = this.timeline.now + (fault === 'is silent' ? PATIENCE : 2_000);
            // What waits in silence goes on waiting when the store is no longer silent.
            this.troubled.set(process, Math.max(until, this.troubled.get(process) ?? 0));
        }
        return fault;
    }

    ofQueue(process: string): QueueFault | null {
        return this.seenBy(this.queue, process);
    }

    ofResolver(): ResolverFault | null {
        return this.seenBy(this.resolver, null);
    }

    private seenBy<Fault>(spell: Spell<Fault> | null, process: string | null): Fault | null {
        if (spell === null || spell.until <= this.timeline.now || (spell.place !== null && process?.startsWith(spell.place) !== true)) {
            return null;
        }
        return spell.fault;
    }
}

/** What becomes of one call to the store or the queue. Times in milliseconds. */
export interface Passage {
    /** Until it gets there, and back. */
    readonly there: number;
    readonly back: number;
    /** That it does not get there, or that nobody hears of what it did. */
    readonly lost: 'call' | 'answer' | null;
}

/** Draws the passage of a call. */
export function passage(fault: StoreFault | 'refuses' | null, random: () => number): Passage {
    const there = Math.floor(3 * random());
    const back = Math.floor(3 * random());
    const lostHalf = random() < 0.5 ? 'call' : 'answer';
    switch (fault) {
        case 'refuses':
            return { there, back, lost: 'call' };
        case 'loses answers':
            return { there, back, lost: random() < 0.5 ? 'answer' : null };
        case 'is slow':
            return { there: there + 500 * random(), back: back + 500 * random(), lost: null };
        case 'is silent':
            return { there, back: PATIENCE, lost: lostHalf };
        default:
            return { there, back, lost: null };
    }
}

/** What a process hears of a call that was lost. */
export function unavailable(part: string): ScanwireError {
    return new ScanwireError('UNAVAILABLE', `The ${part} cannot be used now (simulated)`);
}
