import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAlive, ownIdentity, type ProcessIdentity } from '../process-identity.ts';
import type { WebhooksContext } from './options.ts';
import { RESERVATION_TIMES, type Reservations } from './reservations.ts';
import type { Claim } from './store.ts';

/** A process that claims, for as long as it keeps itself alive in the store. */
export interface Session {
    /** UUID, a new one for each start. */
    readonly id: string;
    /** What runs under it, so that another process on the same machine can tell whether it has ended: an opaque text. */
    readonly process: string;
    /** How many attempts it can make at once, by collector. */
    readonly slots: Readonly<Record<string, number>>;
    /** Generation of the settings that it sends with: once the deployment's is another one, it claims nothing. Any when absent. */
    readonly generation?: number;
    /** Whether its process can unseal the URL of an exporter; earlier releases do not say so. */
    readonly opensUrls?: boolean;
}

/** Under which a process claims: whoever holds claims says all the time that it is alive. */
export interface ClaimingSession {
    readonly id: string;
    /**
     * Ends the sessions of processes of this machine that have ended, then begins.
     *
     * @param onFreed Called when deliveries that were theirs, by claims or by reservations, may be free for others, several times where there were any.
     */
    begin(onFreed: () => void): Promise<void>;
    /** Says how many attempts for a collector this process can make at once. */
    offer(collector: string, slots: number): Promise<void>;
    /** Whether it makes attempts for any. */
    offers(): boolean;
    /** An attempt has begun under a reservation: should it go on for long, it is reported. */
    attemptBegan(claim: Claim): void;
    /** Whether other processes claim, too. */
    hasOthers(): Promise<boolean>;
    /** Says that it makes no more attempts: what it has claimed stays its own. */
    withdraw(): void;
    /** Ends it, so that what was claimed under it and not recorded is free at once. */
    end(): Promise<void>;
}

/** Milliseconds without a sign of life after which the claims of a process count as lost. */
const ALIVE_FOR = 7_500;
const SIGN_EVERY = 2_000;

/**
 * Milliseconds after the end of a process until its reservations that it has not reported can be handed out again, provided that every living
 * session has given a sign of life since.
 */
const RESERVED_FOR = RESERVATION_TIMES.beginWithin + RESERVATION_TIMES.reportedAfter;
/** Milliseconds between signs of life meanwhile, so that the wait is short. */
const FREED_EVERY = 250;

/** What goes on is reported together with what follows within so many milliseconds. */
const REPORTED_TOGETHER = 50;

/** A session of this process that has not begun. */
export function claimingSession(
    { deliveries, newId, onError, member, monotonic }: Pick<WebhooksContext, 'deliveries' | 'newId' | 'onError' | 'member' | 'monotonic'>,
    reservations: Reservations,
): ClaimingSession {
    const id = newId();
    const process = JSON.stringify({ ...ownIdentity(), machine: ownMachine() });
    const slots: Record<string, number> = {};
    let timer: NodeJS.Timeout | undefined;
    let naming: NodeJS.Timeout | undefined;
    let freeing: NodeJS.Timeout | undefined;
    let sign: Promise<void> = Promise.resolve();
    /** Whether the next sign of life waits for the one before it. */
    let signing = false;

    function own(): Session {
        return { id, process, slots, generation: member.generation(), opensUrls: true };
    }

    async function keepAlive(): Promise<void> {
        const asked = monotonic();
        const report = reservations.report();
        reservations.heard(await deliveries.keepAlive(own(), ALIVE_FOR, report), asked);
        reservations.reported(report);
        nameInTime();
    }

    /** One after the other: of two at once, the one that knows less may be the last to get there. */
    function signOfLife(): void {
        if (!signing) {
            signing = true;
            sign = sign
                .then(() => {
                    signing = false;
                    return keepAlive();
                })
                .catch(onError);
        }
    }

    /** Once something has gone on for too long to remain unreported. */
    function nameInTime(): void {
        const wait = reservations.nextReport();
        if (naming !== undefined || wait === null) {
            return;
        }
        naming = setTimeout(() => {
            naming = undefined;
            signOfLife();
        }, wait + REPORTED_TOGETHER);
        naming.unref();
    }

    return {
        id,

        async begin(onFreed) {
            const ended = (await deliveries.sessions()).filter(hasEnded).map(({ id }) => id);
            await deliveries.endSessions(ended);
            await keepAlive();
            timer = setInterval(signOfLife, SIGN_EVERY);
            timer.unref();
            if (ended.length > 0) {
                freeing = speakUntilFreed(signOfLife, () => void sign.then(onFreed));
            }
        },

        async offer(collector, more) {
            slots[collector] = (slots[collector] ?? 0) + more;
            await keepAlive();
        },

        offers: () => Object.keys(slots).length > 0,

        attemptBegan(claim) {
            reservations.begin(claim);
            nameInTime();
        },

        async hasOthers() {
            return (await deliveries.sessions()).some((session) => session.id !== id);
        },

        withdraw() {
            for (const collector of Object.keys(slots)) {
                delete slots[collector];
            }
            signOfLife();
        },

        async end() {
            clearInterval(timer);
            clearInterval(freeing);
            clearTimeout(naming);
            naming = undefined;
            await sign;
            await deliveries.endSessions([id]).catch(onError);
        },
    };
}

/** Does not wait for the next ordinary sign: all that waits meanwhile could be sent. */
function speakUntilFreed(speak: () => void, onSpoken: () => void): NodeJS.Timeout {
    let signs = Math.ceil(RESERVED_FOR / FREED_EVERY) + 1;
    onSpoken();
    const timer = setInterval(() => {
        speak();
        onSpoken();
        signs -= 1;
        if (signs === 0) {
            clearInterval(timer);
        }
    }, FREED_EVERY);
    return timer.unref();
}

/** Only of a process of this machine, whose ids mean the same here, can that be known; others end when they are silent. */
function hasEnded({ process }: Pick<Session, 'process'>): boolean {
    const { machine, ...identity } = identityIn(process);
    return machine === ownMachine() && !isAlive(identity);
}

/** What another version has written need not be read. */
function identityIn(process: string): ProcessIdentity & { readonly machine: string | null } {
    try {
        const { pid, started, machine } = JSON.parse(process);
        return { pid: Number(pid), started: String(started), machine: String(machine) };
    } catch {
        return { pid: 0, started: '', machine: null };
    }
}

/** Where ids of processes mean the same: the name of the machine and, on Linux, what keeps the processes of containers apart. */
function ownMachine(): string {
    try {
        return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
        /* c8 ignore next 3 -- Linux always has it */
    } catch {
        return hostname();
    }
}
