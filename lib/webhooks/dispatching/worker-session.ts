import type { Claim } from '../deliveries/delivery-store.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import type { Outlook } from './outlook.ts';
import { RESERVATION_TIMES, type Reservations } from './reservations.ts';
import { sessionProcess } from './session-process.ts';

/** A process that claims, for as long as it keeps itself alive in the store. */
export interface Session {
    /** UUID, a new one for each start. */
    readonly id: string;
    /** An opaque text for the operating system's process, from which another process of the same machine can tell whether it has ended. */
    readonly process: string;
    /** How many attempts it can make at once, by collector. */
    readonly slots: Readonly<Record<string, number>>;
    /**
     * Generation of the settings that it sends with. Once the deployment has another generation, the session claims nothing. A session without
     * this field claims under any.
     */
    readonly generation?: number;
    /** Whether its process can unseal the URL of an exporter; earlier releases do not say so. */
    readonly opensUrls?: boolean;
}

/** Which sessions are named. */
export interface SessionsOptions {
    /** Also those without a heartbeat in time: their processes have ended, or cannot reach the store. */
    readonly silent?: boolean;
}

/** The session under which a process claims. It tells the store by heartbeats (`keepAlive`) that it is alive. */
export interface ClaimingSession {
    readonly id: string;
    /**
     * Ends the sessions of those processes that are known to have ended, and of what ran under the name of this one, then begins this one.
     *
     * @param onFreed Called when deliveries that such processes held, by claims or by reservations, may be free for others. It may be called
     *     several times.
     */
    begin(onFreed: () => void): Promise<void>;
    /** Says how many attempts for a collector this process can make at once. */
    offer(collector: string, slots: number): Promise<void>;
    /** Whether it makes attempts for a collector, or for any where none is named. */
    offers(collector?: string): boolean;
    /** Notes that an attempt has begun under a reservation. It is reported to the store if it goes on for long. */
    attemptBegan(claim: Claim): void;
    /** Whether other processes claim, too. */
    hasOthers(): Promise<boolean>;
    /** Says that it makes no more attempts: what it has claimed stays its own. */
    withdraw(): void;
    /** Ends the session, so that claims without a recorded outcome are free at once. */
    end(): Promise<void>;
}

type SessionContext = Pick<WebhooksContext, 'deliveries' | 'newId' | 'onError' | 'member' | 'monotonic' | 'processName' | 'lookout'>;

/** Milliseconds without a heartbeat after which the claims of a process count as lost. */
const ALIVE_FOR = 7_500;
const HEARTBEAT_EVERY = 2_000;

/**
 * The same for a process with a name. One whose name another process has taken learns of it by a heartbeat. What it begins until then under reservations
 * it reports in time: what was handed out after its session had ended is not looked for sooner than {@link RESERVED_FOR} later.
 */
const NAMED_HEARTBEAT_EVERY = 1_000;

/**
 * For how many milliseconds after a process has ended what it had by reservations cannot be handed out again. Another process may have got a job
 * with one in time, and then has to report its attempt within this time. Once every living session has sent a heartbeat later than that,
 * deliveries whose attempts none of them has reported are handed out again.
 */
const RESERVED_FOR = RESERVATION_TIMES.beginWithin + RESERVATION_TIMES.reportedAfter;
/** Milliseconds between heartbeats while such reservations are waited for, so that the wait is short. */
const FAST_HEARTBEAT_EVERY = 250;

/**
 * Milliseconds by which a report is put off, so that further attempts share it. That is safe: the store concludes nothing beyond the time up to
 * which reports are complete ({@link BegunAttempts.upTo}), so that a later report only delays finding what is lost.
 */
const REPORTED_TOGETHER = 250;

/**
 * A session of this process that has not begun.
 *
 * @param onReplaced Called once after each beginning at most: another process has begun under the name of this one since.
 */
export function claimingSession(context: SessionContext, reservations: Reservations, onReplaced: () => void): ClaimingSession {
    const { deliveries, newId, onError, member, monotonic, processName } = context;
    const id = newId();
    const heartbeatEvery = processName === null ? HEARTBEAT_EVERY : NAMED_HEARTBEAT_EVERY;
    const process = sessionProcess(processName, { id, deliveries });
    const slots: Record<string, number> = {};
    let timer: NodeJS.Timeout | undefined;
    let reporting: NodeJS.Timeout | undefined;
    let freeing: NodeJS.Timeout | undefined;
    let heartbeat: Promise<void> = Promise.resolve();
    /** Whether the next heartbeat waits for the one before it. */
    let isHeartbeatWaiting = false;

    function own(): Session {
        return { id, process: process.text(), slots, generation: member.generation(), opensUrls: true };
    }

    async function keepAlive(): Promise<void> {
        const asked = monotonic();
        const report = reservations.report();
        reservations.heard(await deliveries.keepAlive(own(), ALIVE_FOR, report, (outlook) => heard(outlook, asked, context)), asked);
        reservations.reported(report);
        reportInTime();
        if (await process.isReplaced()) {
            onReplaced();
        }
    }

    /** Sends heartbeats one after the other: of two at the same time, the older one might arrive last. */
    function sendHeartbeat(): void {
        if (!isHeartbeatWaiting) {
            isHeartbeatWaiting = true;
            heartbeat = heartbeat
                .then(() => {
                    isHeartbeatWaiting = false;
                    return keepAlive();
                })
                .catch(onError);
        }
    }

    /** Sends a heartbeat once an attempt has gone on for so long that it must be reported. */
    function reportInTime(): void {
        const wait = reservations.nextReport();
        if (reporting !== undefined || wait === null) {
            return;
        }
        reporting = setTimeout(() => {
            reporting = undefined;
            // Where attempts are short, the one for which this was set has ended, and nothing is to be reported.
            reservations.nextReport() === 0 ? sendHeartbeat() : reportInTime();
        }, wait + REPORTED_TOGETHER).unref();
    }

    return {
        id,

        async begin(onFreed) {
            const ended = await process.endOthers();
            await keepAlive();
            timer = setInterval(sendHeartbeat, heartbeatEvery);
            timer.unref();
            if (ended > 0) {
                freeing = beatUntilFreed(sendHeartbeat, () => void heartbeat.then(onFreed));
            }
        },

        async offer(collector, more) {
            slots[collector] = (slots[collector] ?? 0) + more;
            await keepAlive();
        },

        offers: (collector) => (collector === undefined ? Object.keys(slots).length > 0 : Object.hasOwn(slots, collector)),

        attemptBegan(claim) {
            reservations.begin(claim);
            reportInTime();
        },

        async hasOthers() {
            return (await deliveries.sessions()).some((session) => session.id !== id);
        },

        withdraw() {
            for (const collector of Object.keys(slots)) {
                delete slots[collector];
            }
            sendHeartbeat();
        },

        async end() {
            clearInterval(timer);
            clearInterval(freeing);
            clearTimeout(reporting);
            reporting = undefined;
            await heartbeat;
            await deliveries.endSessions([id]).catch(onError);
        },
    };
}

/** What the store has told with a heartbeat. */
function heard(outlook: Outlook, asked: number, { lookout, member }: SessionContext): void {
    lookout.heard(outlook, asked);
    if (outlook.settings === member.generation()) {
        member.settingsHeld();
    } else {
        void member.checkSettings();
    }
}

/** Sends heartbeats faster until the reservations of ended processes are free, so that their deliveries are sent soon. */
function beatUntilFreed(sendBeat: () => void, onBeat: () => void): NodeJS.Timeout {
    let beats = Math.ceil(RESERVED_FOR / FAST_HEARTBEAT_EVERY) + 1;
    onBeat();
    const timer = setInterval(() => {
        sendBeat();
        onBeat();
        beats -= 1;
        if (beats === 0) {
            clearInterval(timer);
        }
    }, FAST_HEARTBEAT_EVERY);
    return timer.unref();
}
