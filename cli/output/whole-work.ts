import type { ImportProgress } from '../../lib/inventory/store.ts';

/** A part of the work on an input, in which it goes on in one way. */
export type Phase = 'reading' | ImportProgress['phase'];

/**
 * What a host takes in each phase, beside to read it. Measured with 50,000 hosts of four services; XML, the database and whether a host is new move
 * these by a factor of two.
 */
const COSTS: Readonly<Record<Phase, number>> = { reading: 1, storing: 2, comparing: 0.8, showing: 1, undoing: 0.3 };
/** What comes when all phases are done, of an import whatever its size. */
const END = 0.05;
/** In their order. */
const PHASES = Object.keys(COSTS) as readonly Phase[];
/** After so much of a phase only its own pace counts. */
const MEASURED = 0.1;

/** What is told of the phase at work. */
export interface Told extends Pick<ImportProgress, 'done' | 'ahead'> {
    /** Null where nobody knows. */
    readonly total: number | null;
}

/** How far the whole work is. */
export interface HowFar {
    /** Between 0 and 1, never less than before; null while the size of the input is not known. */
    readonly share: number | null;
    /** Of the phase at work, in its units; null until it is measured. */
    readonly perSecond: number | null;
    /** Seconds until all is done; null until anything is measured. */
    readonly left: number | null;
}

/** Work that is followed over all its phases. */
export interface WholeWork {
    at(phase: Phase, told: Told): HowFar;
}

/**
 * Weighs phases by what they cost, in costs of reading the whole input. What is left of the percentage is spread over what is left of the work: it goes on
 * evenly when the plan for the phases that follow changes, and never back.
 *
 * @param behind The phases that follow the reading, as far as is known before it.
 * @param now Milliseconds.
 */
export function wholeWork(behind: readonly Phase[], now: () => number): WholeWork {
    const parts = partsOf(behind);
    const end = behind.length === 0 ? 0 : END;
    const remaining = (): number => PHASES.reduce((sum, phase) => sum + parts.cost(phase) * (1 - parts.done(phase)), end);
    let pace: Pace | undefined;
    let current: Phase | undefined;
    let share = 0;
    return {
        at(phase, told) {
            parts.plan(phase, told);
            const before = remaining();
            parts.advance(phase, told);
            const after = remaining();
            share = before === 0 ? 1 : 1 - (1 - share) * (after / before);

            const at = { seconds: now() / 1000, units: told.done, cost: parts.cost(phase) * parts.done(phase) };
            if (pace === undefined || phase !== current) {
                pace = paceFrom(at, pace?.perCost() ?? null);
                current = phase;
            }
            pace.at(at, parts.cost(phase));
            const perCost = pace.perCost();
            return {
                share: told.total === null ? null : share,
                perSecond: pace.perSecond(),
                left: perCost === null ? null : perCost * after,
            };
        },
    };
}

/** What each phase costs, and how much of it is done. */
function partsOf(behind: readonly Phase[]) {
    const of = (value: (phase: Phase) => number) => new Map(PHASES.map((phase) => [phase, value(phase)]));
    const sizes = of((phase) => (phase === 'reading' || behind.includes(phase) ? 1 : 0));
    const done = of(() => 0);
    const begun = new Set<Phase>();
    /** Of the input. */
    let hosts: number | undefined;
    return {
        cost: (phase: Phase): number => COSTS[phase] * (sizes.get(phase) ?? 0),
        done: (phase: Phase): number => done.get(phase) ?? 0,

        /** Gives a phase and those behind it the sizes that are told. What was expected before it and has not come does not come any more. */
        plan(phase: Phase, { total, ahead }: Told): void {
            begun.add(phase);
            for (const skipped of PHASES.slice(0, PHASES.indexOf(phase)).filter((earlier) => !begun.has(earlier))) {
                sizes.set(skipped, 0);
            }

            if (phase === 'reading' || total === null) {
                return;
            }

            hosts ??= total;
            sizes.set(phase, total / hosts);
            if (ahead === undefined) {
                return;
            }

            for (const later of PHASES.slice(PHASES.indexOf(phase) + 1)) {
                sizes.set(later, (ahead[later as keyof typeof ahead] ?? 0) / hosts);
            }
        },

        advance(phase: Phase, told: Told): void {
            for (const earlier of PHASES.slice(0, PHASES.indexOf(phase))) {
                done.set(earlier, 1);
            }
            done.set(phase, told.total === null ? 0 : Math.max(done.get(phase) ?? 0, told.done / told.total));
        },
    };
}

/** A moment in a phase. */
interface Moment {
    readonly seconds: number;
    /** What is done, as it is told. */
    readonly units: number;
    /** The same, in what it costs. */
    readonly cost: number;
}

interface Pace {
    /** @param whole What the whole phase costs. */
    at(moment: Moment, whole: number): void;
    /** Units per second since the phase began. */
    perSecond(): number | null;
    /** Seconds for what costs 1. */
    perCost(): number | null;
}

/** @param before Seconds for what costs 1, as the phases before have shown. */
function paceFrom(first: Moment, before: number | null): Pace {
    let perSecond: number | null = null;
    let perCost = before;
    return {
        at({ seconds, units, cost }, whole) {
            const took = seconds - first.seconds;
            const measured = cost - first.cost;
            perSecond = took > 0 && units > first.units ? (units - first.units) / took : perSecond;
            if (took > 0 && measured > 0) {
                const own = took / measured;
                perCost = before === null ? own : before + (own - before) * Math.min(1, measured / whole / MEASURED);
            }
        },
        perSecond: () => perSecond,
        perCost: () => perCost,
    };
}
