import type { Deployment } from '../../lib/webhooks/deployment-settings.ts';
import { SHARES } from '../../lib/webhooks/dispatching/slot-shares.ts';
import type { Session } from '../../lib/webhooks/dispatching/worker-session.ts';
import type { SimulatedProcess } from './simulated-process.ts';
import type { Timeline } from './timeline.ts';

/** The heartbeats of a session: without a gap from when until when they hold. */
export interface Sign {
    readonly process: string;
    readonly since: number;
    readonly until: number;
    /** By collector. */
    readonly slots: Readonly<Record<string, number>>;
    readonly generation: number | undefined;
}

/** Settings of the deployment, since when they are declared. */
interface Generation {
    readonly generation: number;
    readonly vendor: string;
    readonly since: number;
}

/** How many slots there are for the slow exporters of a collector. */
export type SlotsOf = (collector: string | undefined) => number;

/** With all well, a process sees in so many milliseconds that the settings are others. */
const OUTDATED_WITHIN = 5_000;

/** Keeps account of what processes say of themselves. */
export class SessionLedger {
    private readonly sessions = new Map<string, Sign>();
    /** Generations of the settings, the last at the end. */
    private readonly generations: Generation[] = [{ generation: 0, vendor: '', since: 0 }];
    private readonly timeline: Timeline;
    private readonly processes: ReadonlyMap<string, SimulatedProcess>;
    /** When a call of the process to the store went wrong last. */
    private readonly troubled: ReadonlyMap<string, number>;

    constructor(timeline: Timeline, processes: ReadonlyMap<string, SimulatedProcess>, troubled: ReadonlyMap<string, number>) {
        this.timeline = timeline;
        this.processes = processes;
        this.troubled = troubled;
    }

    /** In whose name the deployment sends. */
    get vendor(): string {
        return this.current.vendor;
    }

    /** That of the settings of the deployment. */
    get generation(): number {
        return this.current.generation;
    }

    /** A process has said with what it sends. */
    declared({ generation, settings }: Deployment): void {
        if (generation !== this.generation) {
            this.generations.push({ generation, vendor: settings?.vendor ?? '', since: this.timeline.now });
        }
        this.timeline.note(`settings ${generation}`);
    }

    signed({ id, process, slots, generation }: Session, duration: number): void {
        const { now } = this.timeline;
        const before = this.sessions.get(id);
        const since = before === undefined || before.until <= now ? now : before.since;
        this.sessions.set(id, { process: JSON.parse(process).name, since, until: now + duration, slots: { ...slots }, generation });
    }

    /** Their slots are gone. */
    signedOff(ids: readonly string[]): void {
        for (const id of ids) {
            const sign = this.sessions.get(id);
            if (sign !== undefined) {
                this.sessions.set(id, { ...sign, slots: {} });
            }
        }
    }

    get(session: string | null): Sign | undefined {
        return this.sessions.get(session ?? '');
    }

    /** The name of its process. */
    holder(session: string | null): string {
        return this.get(session)?.process ?? '';
    }

    /** The last one of a process. */
    of(process: string): string | null {
        return [...this.sessions].findLast(([, sign]) => sign.process === process)?.[0] ?? null;
    }

    /** Whether its process should have seen by now that the deployment has other settings. */
    isLongOutdated(session: string | null): boolean {
        const { process: holder = '', generation = this.generation } = this.get(session) ?? {};
        const process = this.processes.get(holder);
        if (process?.alive !== true || generation === this.generation) {
            return false;
        }

        const since = Math.max(this.current.since, process.frozenUntil, this.troubled.get(holder) ?? 0);
        return this.timeline.now - since > OUTDATED_WITHIN;
    }

    /** Whether its process sends with these settings of the deployment, if it sends: what the dead asked for may get there after their session was ended. */
    sendsWith(session: string | null, generation: number): boolean {
        const { process: holder = '', generation: own = generation } = this.get(session) ?? {};
        const process = this.processes.get(holder);
        const declared = this.generations.find((one) => one.generation === generation);
        return process?.alive !== true || (own === generation && process.variant.vendor === declared?.vendor);
    }

    /** Those for slow exporters, who have half of the slots that processes have; quick ones more. */
    slotsForSlow(): SlotsOf {
        const alive = [...this.sessions.values()].filter(({ until }) => until > this.timeline.now);
        const sums = new Map<string, number>();
        for (const { process, slots } of alive) {
            for (const [collector, count] of Object.entries(slots)) {
                const offers = this.processes.get(process)?.collectors.includes(collector) === true;
                const own = offers ? Math.min(count, this.processes.get(process)?.concurrency ?? 0) : 0;
                sums.set(collector, (sums.get(collector) ?? 0) + own);
            }
        }
        return (collector) => Math.max(1, Math.floor((sums.get(collector ?? '') || SHARES.defaultSlots) / 2));
    }

    private get current(): Generation {
        return this.generations.at(-1) as Generation;
    }
}
