import type { Executor } from '../executor.ts';
import type { ExportType, StoredExporter } from './exporter.ts';
import type { Outcome, OutcomeCode } from './outcome.ts';

/** What an exporter's settings are changed to; what is absent stays. */
export type ExporterPatch = Partial<
    Omit<StoredExporter, 'id' | 'createdAt' | 'updatedAt' | 'consecutiveFailures' | 'headerNames' | 'legacy'>
> & {
    readonly headerNames?: readonly string[];
    /** Only when it still has this type; else `CONFLICT`. */
    readonly ifType?: ExportType;
};

/** All methods of both stores reject with ScanwireError `UNAVAILABLE` when the store cannot be reached. */
export interface ExporterStore {
    insert(exporter: StoredExporter): Promise<void>;
    get(id: string): Promise<StoredExporter | null>;
    /** Oldest first. */
    list(): Promise<readonly StoredExporter[]>;
    /** The exporter after the change. Starting one (`state: 'running'`) also resets its failures and its breaker. @throws ScanwireError `NOT_FOUND`, `CONFLICT`. */
    update(id: string, patch: ExporterPatch, at: Date): Promise<StoredExporter>;
    /** Removes the exporter with its secrets; its unfinished deliveries become `cancelled` in the same transaction. False when there was none. */
    remove(id: string, at: Date): Promise<boolean>;
}

/** Something that happened, accepted once. */
export interface StoredEvent {
    /** UUID; the message id on every try. */
    readonly id: string;
    readonly kind: string;
    /** The exact text that is signed and sent, UTF-8. */
    readonly body: string;
    readonly createdAt: Date;
}

/**
 * - `pending`: waits for its time (`dueAt`) and for room in its exporter's window.
 * - `queued`: a job for it was handed to the queue.
 * - `sending`: an attempt was claimed and has not been settled.
 * - `delivered`, `exhausted` (no tries left; kept for replay), `cancelled` (its exporter was removed): final.
 */
export type DeliveryState = 'pending' | 'queued' | 'sending' | 'delivered' | 'exhausted' | 'cancelled';

/** One event on its way to one exporter. */
export interface Delivery {
    /** UUID. */
    readonly id: string;
    readonly eventId: string;
    readonly kind: string;
    readonly exporterId: string;
    readonly collector: string;
    readonly state: DeliveryState;
    /** Attempts claimed so far. A replay starts a new round but goes on counting. */
    readonly attempts: number;
    readonly dueAt: Date;
    readonly createdAt: Date;
    /** When it became final, else null. */
    readonly finishedAt: Date | null;
    /** Code of the last settled attempt, null before the first. */
    readonly lastCode: OutcomeCode | null;
}

/** One POST. `outcome` and `finishedAt` are null while it is under way; a claim that ran out is settled as `interrupted`. */
export interface Attempt {
    readonly number: number;
    readonly startedAt: Date;
    readonly finishedAt: Date | null;
    readonly outcome: Outcome | null;
    /** True when the claim had been lost by the time the outcome came: another attempt may have sent the same message. */
    readonly late: boolean;
}

/** To whom an event goes. */
export type Addressees =
    /** Every running exporter that holds one of these types. */
    | { readonly types: readonly ExportType[] }
    /** This exporter, running or not, with a single attempt that is never retried: a `test`. */
    | { readonly exporterId: string };

export interface Acceptance {
    readonly event: StoredEvent;
    readonly addressees: Addressees;
}

export interface Accepted {
    readonly eventId: string;
    readonly deliveries: readonly string[];
}

/** A delivery that was just marked `queued`. */
export interface Dispatched {
    readonly deliveryId: string;
    readonly collector: string;
    /** Number of the attempt that is to come, from 1. */
    readonly attempt: number;
}

export interface DispatchOptions {
    readonly now: Date;
    /** At most so many deliveries of one exporter are `queued` or `sending` at once. */
    readonly window: number;
    /** From so many consecutive failures on an exporter's window is one probe, and none before its probe is due. */
    readonly breakerAfter: number;
    /** At most so many deliveries in one call. */
    readonly limit: number;
}

export interface SweepOptions {
    readonly now: Date;
    /** Deliveries `queued` before this time are returned, so that their jobs can be added again. */
    readonly queuedBefore: Date;
    readonly limit: number;
}

export interface Swept {
    /** Still `queued`, their `queuedAt` set to `now`. */
    readonly requeue: readonly Dispatched[];
    /** How many claims had run out: their attempts were settled as `interrupted`, the deliveries are `pending` and due now. */
    readonly interrupted: number;
    /** How many of those were single-attempt deliveries and are `exhausted` instead. */
    readonly exhausted: number;
}

export interface ClaimRequest {
    readonly deliveryId: string;
    readonly token: string;
    readonly now: Date;
    /** When the claim runs out, if its holder says nothing until then. */
    readonly expiresAt: Date;
}

/** All that the holder of a claim needs to send. */
export interface Claim {
    readonly deliveryId: string;
    readonly token: string;
    /** Number of this attempt over all rounds, from 1. */
    readonly attempt: number;
    /** Number of this attempt in the present round, from 1: its place in the schedule. */
    readonly round: number;
    /** True for a delivery that is tried once and never retried. */
    readonly single: boolean;
    readonly event: StoredEvent;
    readonly exporter: StoredExporter;
}

/** What becomes of the delivery after an attempt. */
export type NextStep =
    | { readonly state: 'delivered' }
    | { readonly state: 'exhausted' }
    | { readonly state: 'pending'; readonly dueAt: Date };

export interface Settlement {
    readonly deliveryId: string;
    readonly exporterId: string;
    readonly token: string;
    readonly finishedAt: Date;
    readonly outcome: Outcome;
    readonly next: NextStep;
    /** Counts for the exporter's breaker: `success` closes it, `failure` counts up, `none` (a `test`) changes nothing. */
    readonly health: 'success' | 'failure' | 'none';
    /** When an exporter that is (or becomes) broken is probed next. */
    readonly probeAt: Date | null;
    /** Stops the exporter with this reason (an answer 410). */
    readonly stopReason: string | null;
}

/** Reads of many deliveries, newest first. */
export interface DeliveryQuery {
    readonly state?: DeliveryState;
    readonly exporterId?: string;
    /** Continue below this delivery's id. */
    readonly after?: string;
    readonly limit: number;
}

/**
 * Events, deliveries and attempts. Rows are the truth: what `accept` has returned survives the loss of queue and processes.
 * Methods that take arrays do so in one statement each where the store can, and answer in the order of what they were given.
 */
export interface DeliveryStore {
    /**
     * Stores each event with one `pending` delivery per addressee, in one transaction: all of them or none.
     *
     * @param options.tx An open transaction of the host's own to store in; only where {@link DeliveryStore.transactions} is true.
     * @throws ScanwireError `NOT_FOUND` when a named exporter does not exist, `CONFLICT` when an event id is taken.
     */
    accept(acceptances: readonly Acceptance[], options?: { readonly tx?: Executor }): Promise<readonly Accepted[]>;

    /** Whether `accept` can join a transaction of the host's. */
    readonly transactions: boolean;

    /**
     * Marks due deliveries `queued`, at most a window of each exporter: single-attempt ones first and whatever the exporter's
     * state, then, of running exporters only, first tries before retries and older before newer. Safe to call from several
     * processes at once: no delivery is handed out twice.
     */
    dispatch(options: DispatchOptions): Promise<readonly Dispatched[]>;

    /** Finds what queue or workers have lost: jobs queued too long ago and claims that ran out. */
    sweep(options: SweepOptions): Promise<Swept>;

    /**
     * Claims attempts: a `queued` delivery becomes `sending` with an open attempt. Null for a delivery that is in any other
     * state, or whose exporter is gone or (unless single) stopped; a `queued` delivery of a stopped exporter goes back to `pending`.
     */
    claim(requests: readonly ClaimRequest[]): Promise<readonly (Claim | null)[]>;

    /**
     * Records outcomes. Answers, for each, whether its token still held the claim; where not, only the attempt is completed
     * (`late`), the delivery and the exporter stay untouched.
     */
    settle(settlements: readonly Settlement[]): Promise<readonly boolean[]>;

    get(id: string): Promise<Delivery | null>;
    /** Attempts of a delivery, first to last. */
    attempts(deliveryId: string): Promise<readonly Attempt[]>;
    list(query: DeliveryQuery): Promise<readonly Delivery[]>;

    /**
     * Starts a new round for a delivery that is `delivered` or `exhausted`: `pending`, due now, the same body and message id.
     *
     * @throws ScanwireError `NOT_FOUND`, `CONFLICT` when it is still under way or its exporter is gone.
     */
    replay(id: string, at: Date): Promise<Delivery>;
}
