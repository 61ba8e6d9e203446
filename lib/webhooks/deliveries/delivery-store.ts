import type { BegunAttempts, HandOutOptions, Reservation } from '../dispatching/reservations.ts';
import type { Session } from '../dispatching/worker-session.ts';
import type { AcceptedEvent, AcceptOptions, DeliveryContent, EventSummary, NewEvent, StoredEvent } from '../events/new-event.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import type { ReadOptions } from '../exporters/exporter-store.ts';
import type { FormattedMessage } from '../messages/formatted-message.ts';
import type { TraceStore } from '../observing/trace-store.ts';
import type { BreakerRules } from '../outcomes/breaker.ts';
import type { Outcome, OutcomeCode } from '../outcomes/outcome.ts';
import type { ResponseStore } from '../outcomes/response-bodies.ts';
import type { NextState } from '../outcomes/retry-schedule.ts';
import type { SliceCounts, SliceOptions } from './activity.ts';
import type { AttemptStore } from './attempt-lists.ts';
import type { DeliveryFilter, DeliveryQuery } from './deliveries.ts';
import type { DeliveryState } from './delivery-states.ts';
import type { ReplayStore } from './replays.ts';
import type { RetentionStore } from './retention.ts';

/** One event on its way to one exporter. */
export interface Delivery {
    /** UUID. */
    readonly id: string;
    readonly eventId: string;
    readonly kind: string;
    readonly exporterId: string;
    /** The named pool of workers that sends for its exporter. */
    readonly collector: string;
    readonly state: DeliveryState;
    /** Attempts claimed so far. A replay restarts the retry schedule but goes on counting. */
    readonly attempts: number;
    readonly dueAt: Date;
    readonly createdAt: Date;
    /** When it became final, else null. */
    readonly finishedAt: Date | null;
    /** Code of the last outcome, null before the first. */
    readonly lastCode: OutcomeCode | null;
}

/** One POST. `outcome` and `finishedAt` are null until its outcome is recorded; a claim that ran out ends as `interrupted`. */
export interface Attempt {
    readonly number: number;
    readonly startedAt: Date;
    readonly finishedAt: Date | null;
    readonly outcome: Outcome | null;
    /** True when the claim had been lost by the time the outcome came: another attempt may have sent the same message. */
    readonly late: boolean;
}

/** An event that was accepted, with those of its deliveries that were handed out at once. */
export interface Acceptance extends AcceptedEvent {
    readonly handedOut: readonly Dispatched[];
}

/** A delivery that was just marked `queued`. */
export interface Dispatched {
    readonly deliveryId: string;
    readonly exporterId: string;
    readonly collector: string;
    /** Number of the attempt that is to come, from 1. */
    readonly attempt: number;
    /** True for a `test`, which waits for nothing else. */
    readonly singleAttempt: boolean;
    /** Null for one that whoever sends it has to claim first. */
    readonly reservation: Reservation | null;
}

/** What a dispatch has done. */
export interface DispatchResult {
    readonly handedOut: readonly Dispatched[];
    /** Exporters whose attempts are waited for: the end of one may unblock deliveries that are due, for exporters that run and are not paused. */
    readonly waitsFor: readonly string[];
}

/** Which deliveries to hand out. */
export interface DispatchOptions extends HandOutOptions {
    /** Maximum number of deliveries of one call. */
    readonly limit: number;
    /** The most deliveries a second, of all exporters and calls together, single-attempt ones first; any number when absent. */
    readonly rate?: number;
}

/** What a sweep has found. */
export interface SweepResult {
    /** Deliveries whose jobs are to be added to the queue again. */
    readonly lost: readonly Dispatched[];
    /** Ids of the deliveries that have become `poisoned`. */
    readonly poisoned: readonly string[];
}

/** What counts as lost. */
export interface SweepOptions {
    /** Deliveries that have been `queued` for so many milliseconds are returned, so that their jobs can be added again. */
    readonly requeueAfter: number;
    /** Maximum number of lost claims, and of lost jobs. */
    readonly limit: number;
    /** Of claims, only those count as lost whose session was ended: who else is silent may just not have reached the store. */
    readonly endedOnly?: boolean;
    /** Told, as a sentence, what a sweep does besides and could not do this time. The process warns of it by default. */
    readonly onWarning?: (message: string) => void;
}

/** Asks for the claim of a delivery's next attempt: a lease that one worker holds, so that no other sends the same. */
export interface ClaimRequest {
    readonly deliveryId: string;
    /** Proves later that the outcome comes from the holder. */
    readonly token: string;
    /** Milliseconds after which the claim runs out, if no outcome was recorded until then. */
    readonly duration: number;
    /** Token of the {@link Reservation} of the job, absent when it has none. A delivery that has another one by now is not claimed. */
    readonly reservation?: string;
    /** Whether the attempt goes on under `reservation`: then nothing is written, and what is needed to send is read. Else a claim with `token` replaces it. */
    readonly keepsReservation?: boolean;
}

/** A claimed attempt, with all that its holder needs to send. */
export interface Claim {
    readonly deliveryId: string;
    readonly token: string;
    /** In the store's time. */
    readonly claimedAt: Date;
    /** Number of this attempt since the delivery was accepted, from 1. */
    readonly attempt: number;
    /**
     * How far it is in the schedule: number of this attempt since the delivery was accepted or last replayed, from 1, without those that
     * ended as `interrupted`, which were our fault.
     */
    readonly attemptSinceReplay: number;
    /** True for a delivery that gets a single attempt and is never retried: a `test`. */
    readonly singleAttempt: boolean;
    readonly event: StoredEvent;
    /** What is sent in place of the event's body; null for that. */
    readonly message: FormattedMessage | null;
    readonly exporter: StoredExporter;
    /** How often the settings of `exporter` had been changed: {@link Reservation.generation}. */
    readonly generation: number;
}

/** The outcome of a claimed attempt, and what follows from it. */
export interface RecordedOutcome {
    readonly deliveryId: string;
    readonly exporterId: string;
    readonly token: string;
    /**
     * When it began, in the store's time, under a {@link Reservation}: the store may not know yet. Null for one that was claimed, whose beginning the
     * store has written.
     */
    readonly begunAt: Date | null;
    readonly outcome: Outcome;
    readonly next: NextState;
    /**
     * Counts for the exporter's breaker: `success` closes it, `failure` counts up, `none` does not count: a `test`, a fault of ours, and a
     * receiver that wants to be left alone. The last, which comes with `pause`, still begins {@link ExporterHealth.failingSince}.
     */
    readonly health: 'success' | 'failure' | 'none';
    /** Milliseconds for which the receiver wants to be left alone; null when it did not say so. */
    readonly pause: number | null;
    /** Stops the exporter with this reason (a response 410). */
    readonly stopReason: string | null;
}

/** Somebody who listens for what others store. */
export interface Listening {
    /** Resolves once it listens, could not at the first try, or was closed before. Never rejects. */
    readonly ready: Promise<void>;
    /** Hears nothing more from now on; resolves once what it used is free. */
    close(): Promise<void>;
}

/**
 * Events, deliveries and attempts. All methods reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. Rows are the truth: what
 * `accept` has returned survives the loss of queue and processes. Methods that take arrays do so in one statement each where the store can, and
 * resolve with results in the same order.
 *
 * All times are the store's own: those that are given are lengths of time, and those that come back can be compared with each other whichever
 * process asked. Processes whose clocks differ, or are set, change nothing.
 */
export interface DeliveryStore {
    /** What the rows are in: stores that name different ones are refused together. Absent where that cannot be known. */
    readonly database?: object;
    /** What the rows are in, for people: `PostgreSQL`. */
    readonly name?: string;
    /** The store's time. */
    now(): Promise<Date>;

    /**
     * Stores each event with one delivery per recipient, in one transaction: all of them or none. They are `pending`.
     *
     * @throws ScanwireError `NOT_FOUND` when a named exporter does not exist, `CONFLICT` when an event id was accepted before; with the field
     *     `revision`, when exporters choose otherwise by now, with `idempotencyKey` when a key stands for another event; `MISCONFIGURED` for `tx`
     *     where {@link DeliveryStore.transactions} is false.
     */
    accept(newEvents: readonly NewEvent[], options?: AcceptOptions): Promise<readonly Acceptance[]>;

    /**
     * Whether `accept` heeds keys of the caller's. An event whose key was accepted before is not stored again: it is answered with the
     * event and the deliveries of then. With another digest the whole call is refused.
     */
    readonly idempotent?: boolean;

    /**
     * Whether `accept` keeps `held` deliveries for exporters that were stopped by an outcome: of those, {@link StoredExporter.stopReason} is
     * not null. They are not handed out before they are replayed, and end when their exporter is removed or their event erased.
     */
    readonly holds?: boolean;
    /**
     * Whether order keys are heeded. A delivery to an exporter that is ordered, of an event with a key, is handed out (also by `accept`) only
     * when none of the same exporter and key is in flight and none that was accepted before blocks the key. An unfinished one does (neither ended nor
     * `held`), and one that is `exhausted` or `poisoned` where {@link StoredSettings.afterExhausted} is `hold`, until it is replayed, discarded or
     * erased; it is not removed by {@link retention} until then. One that is replayed is unfinished again, and blocks what was accepted after it.
     *
     * Who accepts an event of a key waits for the end of those who have accepted one of the same key and not committed yet, so that this is the
     * order. Whether an exporter is ordered is decided at acceptance; once it is not any more, all that waits goes as if it had no key.
     */
    readonly ordered?: boolean;
    /** Whether `dispatch` heeds {@link DispatchOptions.rate}: a second's worth at most is handed out at once. */
    readonly rated?: boolean;

    /** Whether `accept` can join a transaction of the application. */
    readonly transactions: boolean;
    /**
     * Listens for the commits of transactions of the application with deliveries (PostgreSQL: `NOTIFY`): each commit wakes
     * one listener of one process, the publisher's own where it listens; once, however many events were accepted in it, and where there are
     * hundreds a second, once for several. A hint, which may be lost: rows are looked for all the same. Absent where commits cannot be heard.
     *
     * @param heard Called after a commit, and whenever one may have been missed, as at the beginning.
     * @param onError Called once with why it cannot listen any more, or not yet; it is tried again until it is closed.
     */
    listen?(heard: () => void, onError: (error: Error) => void): Listening;

    /**
     * Marks due deliveries `queued`, at most a window of each exporter: single-attempt ones first and whatever the exporter's state, then, of
     * exporters only that run and are not paused, within the rate of each ({@link StoredSettings.rate}), first tries before retries (which have
     * {@link placesForRetries}) and older before newer. Exporters of a collector share the slots of the sessions that are alive, as {@link shareGroupsOf} says. Safe to call from several
     * processes at once: no delivery is handed out twice.
     */
    dispatch(options: DispatchOptions): Promise<DispatchResult>;

    /**
     * Finds what queue or workers have lost. Attempts whose claim ran out or whose session ended: they end as `interrupted`, the deliveries become `pending`
     * and due after {@link faultDelay}, `poisoned` after {@link FAULTS.poisonedAfter} of these in a row, or `exhausted` if they have a single attempt.
     * Reservations that no session reports: every living one has sent a report with an {@link BegunAttempts.upTo} later than `beginBy` plus
     * {@link RESERVATION_TIMES.reportedAfter} (those without `upTo` do not count); the deliveries become `pending`, and due as before.
     * Jobs queued too long ago: their deliveries stay `queued`, as if from now on, and are returned without a reservation, to be added and claimed.
     */
    sweep(options: SweepOptions): Promise<SweepResult>;

    /**
     * Claims attempts: a `queued` delivery becomes `sending` with an open attempt. Null for one in any other state or whose exporter is gone. Null as well,
     * and the delivery goes back to `pending`, where its exporter is stopped or paused (unless it has a single attempt), or where the session is not
     * known (any more) or has another generation than the deployment.
     * @param session The session that claims, so that its end ends the claims; null for none.
     * @param maxBytes Of all bodies together, no limit when absent. The first body may be longer; from the next that does not fit on, there are no results.
     */
    claim(requests: readonly ClaimRequest[], session: string | null, maxBytes?: number): Promise<readonly (Claim | null)[]>;

    /**
     * Says that a session is alive, for so many milliseconds from now; its claims are lost unless it is said again in time. A session
     * that is not known (any more) begins.
     *
     * @param begun Makes what the session has begun under reservations its own claims.
     * @returns The store's time.
     */
    keepAlive(session: Session, duration: number, begun?: BegunAttempts): Promise<Date>;

    /** Those that are alive. */
    sessions(): Promise<readonly Required<Pick<Session, 'id' | 'process' | 'slots' | 'opensUrls'>>[]>;
    /** Ends sessions: the next sweep takes their claims away. */
    endSessions(ids: readonly string[]): Promise<void>;

    /**
     * Records outcomes. Resolves, for each, with whether its token was still that of the claim; where not, the attempt is completed (`late`)
     * and by a `delivered` the delivery becomes `delivered` all the same, also one that is `poisoned`, but none that has ended otherwise; nothing
     * else changes.
     */
    recordOutcomes(outcomes: readonly RecordedOutcome[], breaker: BreakerRules): Promise<readonly boolean[]>;

    get(id: string, options?: ReadOptions): Promise<Delivery | null>;
    /** Attempts of a delivery, first to last. */
    attempts(deliveryId: string, options?: ReadOptions): Promise<readonly Attempt[]>;
    /** What a delivery sends, null when there is no such delivery. Absent in a store that does not show it. */
    content?(deliveryId: string): Promise<DeliveryContent | null>;
    /** Whether `list`, `count` and `activity` heed `exporterIds`, where it is refused otherwise. */
    readonly filtersByExporters?: boolean;
    list(query: DeliveryQuery): Promise<readonly Delivery[]>;
    /** Whether `count` counts beyond `max`: where fewer than that have not ended, and no event, no time and no state in which a delivery still waits, is held or is in flight is asked for. */
    readonly keepsCounts?: boolean;
    /** How many there are, counted up to `max`, but for `keepsCounts`. */
    count(filter: DeliveryFilter, max: number): Promise<number>;
    /** What became of the deliveries between each two of these times, which ascend. Absent in a store that does not count them so. */
    activity?(bounds: readonly Date[], options: SliceOptions): Promise<readonly SliceCounts[]>;

    /**
     * Restarts the retry schedule (a `test` gets a single attempt again) for a delivery that is `delivered`, `exhausted`, `poisoned` or `held`, or
     * `pending` after an attempt: `pending`, due now, the same body and message id.
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT` when it is on its way or waits for its first try, its exporter was removed or its event was erased.
     */
    replay(id: string): Promise<Delivery>;

    /** Ends as `cancelled` what is `pending`, `exhausted`, `poisoned` or `held`, else `CONFLICT`; others of its order key go on. Absent where it cannot. */
    discard?(id: string): Promise<Delivery>;

    /** Replays of many deliveries. Absent in a store that keeps none, where they are refused. */
    readonly replays?: ReplayStore;
    /** Attempts of many deliveries. Absent in a store that lists only those of one, where that is refused. */
    readonly attemptLists?: AttemptStore;
    /** Removes what was kept long enough. Absent in a store that keeps everything, or removes by rules of its own. */
    readonly retention?: RetentionStore;
    /** In which traces events were published, for as long as an event without deliveries is kept. Absent: only what its publisher sends at once has spans. */
    readonly traces?: TraceStore;
    /** What receivers answered to attempts in vain. Absent in a store that keeps none, where nothing is shown of it. */
    readonly responses?: ResponseStore;

    /** An event, whether its body is there or not. */
    event(id: string): Promise<EventSummary | null>;

    /**
     * Erases the body of an event, which becomes empty; its deliveries that have not ended, `held` ones too, and those that have ended and block
     * their order keys, become `erased` in the same transaction, and nothing of it is claimed any more. Once more it changes nothing.
     *
     * @returns The event, and how many deliveries have ended by this.
     * @throws ScanwireError `NOT_FOUND`.
     */
    erase(eventId: string): Promise<EventSummary & { readonly ended: number }>;
}
