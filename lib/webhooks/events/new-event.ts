import type { Executor } from '../../transaction.ts';
import type { HandOutOptions } from '../dispatching/reservations.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import type { FormattedMessage } from '../messages/formatted-message.ts';
import type { TraceStore } from '../observing/trace-store.ts';
import type { ExportType } from '../setting-values.ts';

/** Something that happened, accepted once. */
export interface StoredEvent {
    /** UUID; the message id in every attempt. */
    readonly id: string;
    readonly kind: string;
    /** The exact text that is signed and sent, UTF-8. */
    readonly body: string;
    readonly createdAt: Date;
    /** The span that published it, as W3C Trace Context writes it; absent where none is known. */
    readonly traceparent?: string;
}

/** An event without its body. */
export interface EventSummary extends Omit<StoredEvent, 'body'> {
    /** When its body was erased, in the store's time; null while it is there. */
    readonly erasedAt: Date | null;
}

/** An event to accept. It happens when it is accepted, in the store's time. */
export interface NewEvent {
    readonly event: Omit<StoredEvent, 'createdAt' | 'traceparent'>;
    /** Whether the body is known to be JSON with nothing around it, so that a store may give it to its database as such. */
    readonly isJson?: boolean;
    /** Whose it is; the deployment's own when absent. */
    readonly owner?: string | null;
    /** Only where {@link DeliveryStore.idempotent} is true. */
    readonly idempotency?: IdempotencyKey;
    /**
     * A key that the caller has chosen: ordered exporters get the events with the same key one after another. Only where
     * {@link DeliveryStore.ordered} is true.
     */
    readonly orderKey?: string;
    /** {@link StoredEvent.traceparent}, for attempts that this process makes, and to be kept where {@link TraceStore.keptByAccept} is true. */
    readonly traceparent?: string;
    readonly recipients: Recipients;
}

/** How events are accepted. */
export interface AcceptOptions {
    /** An open transaction of the application to store in; only where {@link DeliveryStore.transactions} is true. */
    readonly tx?: Executor;
    /**
     * The options for handing out first tries at once: `queued`, with their reservations. It is done for exporters that have room, are not being
     * probed, and have no older first try that is due. While retries are due, {@link placesKeptByAcceptance} are left free. No lock is waited for,
     * so that acceptances at the same time may exceed a window. Not with `tx`.
     */
    readonly handOut?: Required<HandOutOptions>;
    /** The {@link SubscribedExporters.revision} by which subscribers were chosen. */
    readonly revision?: number;
    /**
     * Milliseconds after which events are left out ({@link Acceptance.locked}) whose order keys an open transaction has. With 0 none is waited for, and
     * all others are accepted, unless a transaction has all keys; with more, all of the call are left out together, and where none has an order key so
     * they are for an idempotency key too. So they are with 0 where a transaction has the idempotency key of one of them, which is waited for for a
     * moment. Absent: it waits for as long as a statement may take. A store may take no notice. Not with `tx`.
     */
    readonly lockTimeout?: number;
}

/** A key of the caller's under which only one event is accepted, for as long as that event is kept. Each owner has keys of its own. */
export interface IdempotencyKey {
    readonly key: string;
    /** Digest of the event's kind and body. */
    readonly digest: string;
}

/** To whom an event goes. */
export type Recipients =
    /**
     * Among the exporters that are no subscribers (that have no owner, kinds, filter or format): all of these types. Among the others: `subscribers`.
     * The event goes only to exporters that run, and to those that an outcome has stopped, for which it is `held` where the store
     * can do so.
     */
    | { readonly types: readonly ExportType[]; readonly subscribers?: readonly ChosenSubscriber[] }
    /** This exporter, running or not, with a single attempt that is never retried: a `test`. */
    | { readonly exporterId: string; readonly message?: FormattedMessage | null };

/** A subscriber that the event goes to, and what it gets. Other recipients are not named: they get the event by their type, as it is. */
export interface ChosenSubscriber {
    readonly exporterId: string;
    /** Null for the event's own body. */
    readonly message: FormattedMessage | null;
}

/** The subscribers (exporters with an owner, kinds, a filter or a format), as they were at one time. */
export interface SubscribedExporters {
    /** How often subscribers had changed. */
    readonly revision: number;
    /** The store's time. */
    readonly at: Date;
    readonly exporters: readonly StoredExporter[];
}

/** An event that was accepted, with the ids of its deliveries. */
export interface AcceptedEvent {
    readonly eventId: string;
    readonly deliveries: readonly string[];
}

/** What a delivery sends. Its parts are read in one moment. */
export interface DeliveryContent {
    readonly exporterId: string;
    /** The event; its body is empty once it was erased. */
    readonly event: StoredEvent & Pick<EventSummary, 'erasedAt'>;
    /** What is sent in place of the event's body; null for that. */
    readonly message: FormattedMessage | null;
}
