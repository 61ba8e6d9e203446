import type { Listening, Outlook } from '../dispatching/outlook.ts';
import type { BegunAttempts, HandOutOptions, Reservation } from '../dispatching/reservations.ts';
import type { Session, SessionsOptions } from '../dispatching/worker-session.ts';
import type { AcceptedEvent, AcceptOptions, DeliveryContent, EventSummary, NewEvent, StoredEvent } from '../events/new-event.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import type { ReadOptions } from '../exporters/exporter-store.ts';
import type { FormattedMessage, MessageStore } from '../messages/formatted-message.ts';
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
    readonly handedOut: readonly HandedOut[];
    /** Of a new event: exporters with deliveries that were not handed out, or are `held`. Given, they are looked for less often; else at once. */
    readonly leftFor?: readonly string[];
    /** True of an event that was not accepted, and has no deliveries: an open transaction has its key ({@link AcceptOptions.lockTimeout}). */
    readonly locked?: true;
}

/** A delivery that was just marked `queued`. */
export interface HandedOut {
    readonly deliveryId: string;
    readonly exporterId: string;
    readonly collector: string;
    /** Number of the attempt that is to come, from 1. */
    readonly attempt: number;
    /** True for a `test`: it is handed out even where its exporter is stopped, paused, or has an open breaker, and has places of its own. */
    readonly singleAttempt: boolean;
    /** Null for one that whoever sends it has to claim first. */
    readonly reservation: Reservation | null;
}

/** What a dispatch has done. */
export interface DispatchResult {
    readonly handedOut: readonly HandedOut[];
    /** Exporters for which the end of an attempt may unblock due deliveries that were left, but not those of stopped or paused exporters. */
    readonly waitsFor: readonly string[];
    /** Where nothing is due: in how many milliseconds the first of what waits will be, null when nothing waits. Absent where something is, or that is not known. */
    readonly nextDueIn?: number | null;
    /** Where the store makes more due with each dispatch: in how many milliseconds to dispatch again. Absent where it does not. */
    readonly goOnIn?: number;
}

/** Which deliveries to hand out. */
export interface DispatchOptions extends HandOutOptions {
    /** Maximum number of deliveries that one call hands out. */
    readonly limit: number;
    /** Maximum number of deliveries a second, over all exporters and calls, single-attempt ones first; no limit when absent. */
    readonly rate?: number;
}

/** What a sweep has found. */
export interface SweepResult {
    /** Deliveries whose jobs are to be added to the queue again. */
    readonly lost: readonly HandedOut[];
    /** Ids of the deliveries that have become `poisoned`. */
    readonly poisoned: readonly string[];
}

/** What counts as lost. */
export interface SweepOptions {
    /** Deliveries that have been `queued` for so many milliseconds are returned, so that their jobs can be added again. */
    readonly requeueAfter: number;
    /** Maximum number of lost jobs. Of lost claims ten times as many: all that a process had in flight is to be free together, once it has died. */
    readonly limit: number;
    /** Whether only claims of ended sessions count as lost: a session that is merely silent may just not have reached the store. */
    readonly endedOnly?: boolean;
    /** Told, as a sentence, which of its other work a sweep could not do this time. By default the process emits a warning. */
    readonly onWarning?: (message: string) => void;
}

/** Asks for the claim of a delivery's next attempt: a lease that one worker holds, so that no other sends the same. `collector` is its job's; absent for any. */
export interface ClaimRequest extends Partial<Pick<HandedOut, 'collector'>> {
    readonly deliveryId: string;
    /** Proves later that the outcome comes from the holder. */
    readonly token: string;
    /** Milliseconds after which the claim runs out, if no outcome was recorded until then. */
    readonly duration: number;
    /** Token of the {@link Reservation} of the job, absent when it has none. A delivery that has another one by now is not claimed. */
    readonly reservation?: string;
    /** True: the attempt is made under `reservation`; what is needed to send is read, nothing written. Else a claim with `token` replaces the reservation. */
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
     * How far the delivery is in its retry schedule: the number of this attempt since it was accepted or last replayed, from 1. Attempts
     * that ended as `interrupted` do not count, since they failed on our side.
     */
    readonly attemptSinceReplay: number;
    /** True for a delivery that gets a single attempt and is never retried: a `test`. */
    readonly singleAttempt: boolean;
    /** With an empty body where there is a `message`: that body is not sent, may be as long as any, and nobody would count it. */
    readonly event: StoredEvent;
    /** What is sent in place of the event's body; null for that. */
    readonly message: FormattedMessage | null;
    readonly exporter: StoredExporter;
    /** Generation of `exporter`: {@link Reservation.generation}. */
    readonly generation: number;
}

/** The outcome of a claimed attempt, and what follows from it. */
export interface RecordedOutcome {
    readonly deliveryId: string;
    readonly exporterId: string;
    readonly token: string;
    /**
     * When an attempt under a {@link Reservation} began, in the store's time: the store may not know that yet. Null for an attempt that was claimed,
     * since the store wrote down its beginning with the claim.
     */
    readonly begunAt: Date | null;
    readonly outcome: Outcome;
    readonly next: NextState;
    /**
     * What this outcome does to the exporter's breaker ({@link ExporterHealth} is how the exporter fares): `success` closes it, `failure` is one more
     * in a row. `none` changes nothing; but with `pause`, {@link ExporterHealth.failingSince} begins where it was null. It goes with a `test`, a fault,
     * a receiver that wants to be left alone, a success or failure whose details the store has refused, and a delivery that no worker can send.
     */
    readonly health: 'success' | 'failure' | 'none';
    /** Milliseconds for which the receiver wants to be left alone; null when it did not say so. */
    readonly pause: number | null;
    /** Stops the exporter with this reason (a response 410). */
    readonly stopReason: string | null;
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
    /** The database that holds the rows: stores that name different databases are refused when they are given together. Absent where that cannot be known. */
    readonly database?: object;
    /** What the database is called for people: `PostgreSQL`. */
    readonly name?: string;
    /** The store's time. */
    now(): Promise<Date>;

    /**
     * Stores each event with one delivery per recipient, in one transaction: all of them or none. They are `pending`; those of an exporter that an
     * outcome has stopped are `held` ({@link holds}), and with {@link AcceptOptions.handOut} some are `queued`.
     *
     * @throws ScanwireError `NOT_FOUND` when a named exporter does not exist; `CONFLICT` without a field when an event id was accepted before, with
     *     the field `revision` when subscribers have changed since the events were routed, and with `idempotencyKey` when the key was given for
     *     another event; `MISCONFIGURED` for `tx` where {@link DeliveryStore.transactions} is false.
     */
    accept(newEvents: readonly NewEvent[], options?: AcceptOptions): Promise<readonly Acceptance[]>;

    /**
     * Whether `accept` heeds the caller's idempotency keys. An event whose key was accepted before is not stored again: the caller gets the event
     * and the deliveries of the first time. If the digest differs from that of the first time, the whole call is refused.
     */
    readonly idempotent?: boolean;

    /**
     * Whether `accept` keeps `held` deliveries for exporters that were stopped by an outcome, whose {@link StoredExporter.stopReason} is then not
     * null. Such deliveries are not handed out before they are replayed, and end when their exporter is removed or their event erased.
     */
    readonly holds?: boolean;
    /**
     * Whether order keys are heeded. A delivery of an event with a key, to an ordered exporter, is handed out (also by `accept`) only when no
     * delivery of the same exporter and key is in flight, and none that was accepted before it blocks the key. An active delivery (neither ended
     * nor `held`) blocks it until it ends; replayed, it is active again. Where {@link StoredSettings.afterExhausted} is `hold`, an `exhausted` or
     * `poisoned` one blocks it too, until it is replayed, discarded or erased, before which {@link retention} does not remove it.
     *
     * The order is that of the commits: `accept` waits for open transactions in which an event with the same key was accepted. Whether the key of a
     * delivery counts is decided by whether its exporter is ordered at acceptance. Once the exporter is not ordered, what waits is sent as if without.
     */
    readonly ordered?: boolean;
    /** Whether `dispatch` heeds {@link DispatchOptions.rate}: it hands out at most as much at once as the rate allows in a second. */
    readonly rated?: boolean;

    /** Whether `accept` can join a transaction of the application. */
    readonly transactions: boolean;
    /**
     * Listens for commits of the application's transactions in which events were accepted (PostgreSQL: `NOTIFY`). Each commit wakes one listener
     * of one process, that of the publisher's own process if it listens. It does so once, however many events were accepted in it, and where there
     * are hundreds of commits a second, once for several. It may be lost: due rows are found without it. Absent where commits cannot be heard.
     *
     * @param heard Called after a commit, and whenever one may have been missed, as at the beginning.
     * @param onError Called once with the reason when it cannot listen, at the beginning or later; it goes on trying until it is closed.
     */
    listen?(heard: () => void, onError: (error: Error) => void): Listening;

    /**
     * Marks due deliveries `queued`, of each exporter at most as many as its window has room for. Those with a single attempt come first, whatever
     * the state of their exporter. The others are only those of exporters that run and are not paused, within the rate of each
     * ({@link StoredSettings.rate}): first tries before retries (for which {@link placesKeptByDispatch} are kept free), and older before newer. Of
     * the `rate` in the options retries get an eighth while first tries wait. The exporters of a collector share the slots of the sessions that are alive,
     * as {@link shareGroupsOf} says. Safe to call from several processes at once: no delivery is handed out twice.
     */
    dispatch(options: DispatchOptions): Promise<DispatchResult>;

    /**
     * Finds what the queue or workers have lost:
     *
     * - Attempts whose claim ran out or whose session has ended. They end as `interrupted`. Their deliveries become `pending` and due after
     *   {@link faultDelay}; `poisoned` after {@link FAULTS.poisonedAfter} such ends in a row; or `exhausted` if they have a single attempt.
     * - Reservations under which no attempt has begun. That is known once each living session (but for those that send no {@link BegunAttempts.upTo})
     *   has sent an `upTo` later than `beginBy` plus {@link RESERVATION_TIMES.reportedAfter}, and none has reported the attempt. Their deliveries become
     *   `pending`, and due as before.
     * - Jobs that were queued too long ago. Their deliveries stay `queued`, as if they had been queued now, and are returned without a reservation,
     *   so that their jobs are added again and have to be claimed.
     */
    sweep(options: SweepOptions): Promise<SweepResult>;

    /**
     * Claims attempts: a `queued` delivery becomes `sending` with an open attempt. The result is null for a delivery in any other state and for
     * one whose exporter is gone. It is null too, and the delivery goes back to `pending`, where the exporter is stopped or paused (unless the delivery has a
     * single attempt) or has another collector, and where the session is unknown, has ended, or has another generation than the deployment.
     *
     * @param session The session that claims, so that its end ends the claims; null for none.
     * @param maxBytes Limit of all bodies together; none when absent. The first claim is given however long its body is. Once a body does not fit, the
     *     results of it and of all after it are null.
     */
    claim(requests: readonly ClaimRequest[], session: string | null, maxBytes?: number): Promise<readonly (Claim | null)[]>;

    /**
     * Says that a session is alive for `duration` milliseconds. Unless that is said again in time, its claims are lost. One that is unknown or has ended begins.
     *
     * @param begun Makes what the session has begun under reservations its own claims.
     * @param tell Called, before this resolves, with what there is to do after it. A store need not call it: then each of that is looked for.
     * @returns The store's time.
     */
    keepAlive(session: Session, duration: number, begun?: BegunAttempts, tell?: (outlook: Outlook) => void): Promise<Date>;

    /** Whether `sessions` heeds `silent`. Otherwise what a dead process of this machine left is freed no sooner than what one of another machine left. */
    readonly namesSilent?: boolean;
    /** The sessions that are alive; with `silent` all that the store knows, where {@link namesSilent} is true. */
    sessions(options?: SessionsOptions): Promise<readonly Required<Pick<Session, 'id' | 'process' | 'slots' | 'opensUrls'>>[]>;
    /** Ends sessions: the next sweep takes their claims away. */
    endSessions(ids: readonly string[]): Promise<void>;

    /**
     * Records outcomes. Resolves, for each, with whether its token was still that of the claim. Where it was not, the attempt is completed all the
     * same, as `late`. If such an outcome is `delivered`, its delivery becomes `delivered` as well, unless it has ended in a state other than
     * `poisoned`. Nothing else changes.
     */
    recordOutcomes(outcomes: readonly RecordedOutcome[], breakerRules: BreakerRules): Promise<readonly boolean[]>;

    get(id: string, options?: ReadOptions): Promise<Delivery | null>;
    /** Attempts of a delivery, first to last. */
    attempts(deliveryId: string, options?: ReadOptions): Promise<readonly Attempt[]>;
    /** What a delivery sends, null when there is no such delivery. Absent in a store that does not show it. */
    content?(deliveryId: string): Promise<DeliveryContent | null>;
    /** Whether `list`, `count` and `activity` heed `exporterIds`, where it is refused otherwise. */
    readonly filtersByExporters?: boolean;
    list(query: DeliveryQuery): Promise<readonly Delivery[]>;
    /**
     * Whether `count` may return more than `max`: such a store keeps the numbers of ended deliveries, and counts only the others one by one. The
     * result may be larger where the filter names no event, no time, and either no state or one in which deliveries have ended; and only where fewer
     * than `max` of the deliveries that it selects have not ended.
     */
    readonly keepsCounts?: boolean;
    /** How many there are, counted up to `max`; {@link keepsCounts} says when it may be more. */
    count(filter: DeliveryFilter, max: number): Promise<number>;
    /** What became of the deliveries accepted in each slice of time, from one of these ascending bounds to the next. Absent where they are not counted so. */
    activity?(bounds: readonly Date[], options: SliceOptions): Promise<readonly SliceCounts[]>;

    /**
     * Sends a delivery again that is `delivered`, `exhausted`, `poisoned` or `held`, or `pending` after an attempt. It becomes `pending`, due now, with the
     * same body and message id, and its retry schedule begins anew (a `test` gets a single attempt again).
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT` when it is on its way, waits and has had no attempt yet, or was discarded, and when its exporter was
     *     removed or its event was erased.
     */
    replay(id: string): Promise<Delivery>;

    /**
     * Ends a delivery that is `pending`, `exhausted`, `poisoned` or `held` as `cancelled`; other deliveries with its order key go on. Absent in a
     * store that cannot do so.
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT` when it is in another state.
     */
    discard?(id: string): Promise<Delivery>;

    /** Replays of many deliveries. Absent in a store that keeps none, where they are refused. */
    readonly replays?: ReplayStore;
    /** Attempts of many deliveries. Absent in a store that lists only those of one, where that is refused. */
    readonly attemptLists?: AttemptStore;
    /** Removes what was kept long enough. Absent in a store that keeps everything, or removes by rules of its own. */
    readonly retention?: RetentionStore;
    /** Traces of events, kept for `keepFor` and {@link EVENT_MARGIN} whatever becomes of these. Without it, only what the publisher sends at once has spans. */
    readonly traces?: TraceStore;
    /** Messages that are made after their acceptance. Absent in a store that keeps none: each attempt then makes its own. */
    readonly messages?: MessageStore;
    /** What receivers answered to attempts that failed. Absent in a store that keeps no answers. */
    readonly responses?: ResponseStore;

    /** An event, whether its body is there or not. */
    event(id: string): Promise<EventSummary | null>;

    /**
     * Erases the body of an event: it becomes empty. In the same transaction those of its deliveries become `erased` that have not ended (`held` ones
     * included) or that have ended and block their order keys. After that none is claimed any more. To erase an event again changes nothing.
     *
     * @returns The event, and how many deliveries this has ended.
     * @throws ScanwireError `NOT_FOUND`.
     */
    erase(eventId: string): Promise<EventSummary & { readonly ended: number }>;
}
