import { batched } from '../../batched.ts';
import { ScanwireError } from '../../errors.ts';
import { assertTransaction, type Executor } from '../../transaction.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import { ACCEPTANCES_AT_ONCE, acceptanceLimit } from '../dispatching/acceptance-limit.ts';
import { noteMade } from '../messages/formatted-message.ts';
import type { MessageCache } from '../sending/message-cache.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { isLarge, restAfter } from './event-body.ts';
import type { EventBody } from './event-body-types.ts';
import type { EventKinds } from './event-kinds.ts';
import type { UnroutedEvent } from './event-routing.ts';
import { keyedAcceptance, ownedKeyOf } from './keyed-acceptance.ts';
import { hasKey, listAcceptance } from './list-acceptance.ts';
import type { AcceptedEvent, AcceptOptions, NewEvent } from './new-event.ts';
import { orderedAcceptance } from './ordered-acceptance.ts';
import { type PublishOptions, unroutedEvents } from './unrouted-event.ts';

/** An event that was accepted. */
export interface PublishedEvent extends AcceptedEvent {
    /**
     * Makes this process look for due deliveries now. A host (an application that publishes) calls it after the commit of `tx` if the store does
     * not notify of commits (see `listen` of the store), because that is switched off or impossible. Without the call the event is found within a
     * second.
     */
    readonly wake: () => void;
}

/**
 * Accepts an event: checks its body, freezes it as bytes and stores it with one delivery per exporter that wants it. Once the promise resolves
 * (with `tx`: once that transaction commits), the event survives the loss of process and queue.
 *
 * @throws ScanwireError `INVALID_INPUT` for an unknown kind or a body that breaks its schema or is too long, with the field; `MISCONFIGURED` for
 *     a `tx` that is no transaction, or with a store that cannot join one; `UNAVAILABLE` when the store cannot be reached, or an open transaction
 *     has had the order key, or something else that the event needs, for 25 s. Nothing is stored then, unless the connection was lost before the
 *     answer came: in that case it may have been. A repeat with the same `idempotencyKey` stores nothing twice.
 */
export type Publish = <Kind extends string>(kind: Kind, body: EventBody<Kind>, options?: PublishOptions) => Promise<PublishedEvent>;

/** One of many events. */
export interface EventToPublish<Kind extends string = string> extends Omit<PublishOptions, 'tx'> {
    readonly kind: Kind;
    readonly body: EventBody<Kind>;
}

/**
 * Accepts many events in one statement, in their order: all of them or none. At most 1,000, and 16 MiB of bodies.
 *
 * @throws ScanwireError as {@link Publish}; the field begins with the index of the event, `[3].actors`.
 */
export type PublishAll = <const Kinds extends readonly string[]>(
    events: { readonly [Index in keyof Kinds]: EventToPublish<Kinds[Index]> },
    options?: Pick<PublishOptions, 'tx'>,
) => Promise<readonly PublishedEvent[]>;

/** Both ways to publish. */
export interface Publisher {
    readonly publish: Publish;
    readonly publishAll: PublishAll;
}

const MAX_EVENTS = 1_000;
const MAX_BYTES = 16 * 1024 * 1024;

/** Maximum number of events, each published by a call of its own, that share one statement. Those of one `publishAll` always share one. */
const BATCH = 100;

/** The same of events with large bodies. */
const LARGE_BATCH = 4;

/** Publishes events of the known kinds ({@link EventKinds}) into a store. */
export function publisher(context: WebhooksContext): Publisher {
    const { deliveries, dispatcher, session, reservations, messageCache, routing, monotonic, sleep } = context;
    const { written, unrouted } = unroutedEvents(context);
    const published = publishing(context);
    const traced = tracedBy(context);
    const limit = acceptanceLimit(dispatcher);
    const acceptTogether = (events: readonly UnroutedEvent[]) => routing.route(events, accept);
    const acceptBatched = batched<UnroutedEvent, Acceptance>(acceptTogether, BATCH, ACCEPTANCES_AT_ONCE);
    // Small events are not to wait for a statement with large bodies.
    const acceptLarge = batched<UnroutedEvent, Acceptance>(acceptTogether, LARGE_BATCH);
    // Events with order keys have statements of their own: they may wait for others with the same keys, and must not keep other events waiting.
    const acceptOrdered = orderedAcceptance({
        accept: (events, lockTimeout) =>
            routing.route(events, (newEvents, revision) => accept(newEvents, { lockTimeout, ...revision }, lockTimeout === 0)),
        limit: BATCH,
        monotonic,
        sleep,
    });
    const keyedSteps = {
        accept: (events: readonly UnroutedEvent[], lockTimeout: number) =>
            routing.route(events, (newEvents, revision) => accept(newEvents, { lockTimeout, ...revision })),
        acceptLocked: acceptOrdered.one,
    };
    const acceptKeyedList = listAcceptance({ ...keyedSteps, acceptLocked: acceptOrdered.all });
    const acceptList = (events: readonly UnroutedEvent[]) => (events.some(hasKey) ? acceptKeyedList(events) : acceptTogether(events));
    const acceptKeyed = keyedAcceptance({ ...keyedSteps, limit: BATCH });
    const acceptLargeKeyed = keyedAcceptance({ ...keyedSteps, limit: LARGE_BATCH });

    /**
     * Stores events. A publish waits for the rows, and not for the queue.
     *
     * @param mayHandOut False where it may wait for somebody else's key for long.
     */
    async function accept(
        newEvents: readonly NewEvent[],
        options: Pick<AcceptOptions, 'revision' | 'lockTimeout'>,
        mayHandOut = true,
    ): Promise<readonly Acceptance[]> {
        const accepted = await limit.run(
            (handOut) => deliveries.accept(newEvents, handOut === undefined ? options : { handOut, ...options }),
            leftToDispatch,
            { mayHandOut },
        );
        const createdAt = reservations.now();
        if (createdAt !== null && session.offers()) {
            for (const [index, one] of accepted.entries()) {
                cacheMessages(messageCache, newEvents[index] as NewEvent, one, createdAt);
            }
        }
        const handedOut = accepted.flatMap((one) => one.handedOut);
        if (handedOut.length > 0) {
            dispatcher.add(handedOut);
        }
        return accepted;
    }

    const resting = (milliseconds: number): Promise<void> | undefined => (milliseconds > 0 ? sleep(milliseconds) : undefined);

    function acceptIn(tx: Executor, events: readonly UnroutedEvent[]): Promise<readonly Acceptance[]> {
        return routing.route(events, (newEvents, revision) => deliveries.accept(newEvents, { tx, ...revision }), tx);
    }

    function acceptOne(tx: Executor | undefined, event: UnroutedEvent): Promise<Acceptance> {
        if (tx !== undefined) {
            return acceptIn(tx, [event]).then(only);
        }
        if (event.orderKey !== undefined) {
            return acceptOrdered.one(event);
        }
        const [small, large] = event.idempotency === undefined ? [acceptBatched, acceptLarge] : [acceptKeyed, acceptLargeKeyed];
        return isLarge(event.body) ? large(event) : small(event);
    }

    return {
        async publish(kind, body, { tx, ...options } = {}) {
            const one = written(kind, body);
            assertJoinable(tx);
            // Events with an order key keep the order of their calls.
            const rest = options.orderKey === undefined ? restBefore(tx, [{ body: one.written.text }]) : 0;
            await resting(rest);
            const event = unrouted(one, options);
            await resting(rest);
            const [accepted] = await traced([event], tx, async ([one]) => [await acceptOne(tx, one as UnroutedEvent)]);
            return published(event, accepted as Acceptance, tx !== undefined);
        },

        async publishAll(events, { tx } = {}) {
            if (!Array.isArray(events) || events.length > MAX_EVENTS) {
                throw new ScanwireError('INVALID_INPUT', `Events must be a list of at most ${MAX_EVENTS}`, { field: 'events' });
            }

            assertJoinable(tx);
            const all = events.map(({ kind, body, ...options }, index) => atIndex(index, () => unrouted(written(kind, body), options)));
            assertTogether(all);
            await resting(restBefore(tx, all));
            const accepted =
                all.length === 0 ? [] : await traced(all, tx, (events) => (tx === undefined ? acceptList(events) : acceptIn(tx, events)));
            return accepted.map((one, index) => published(all[index] as UnroutedEvent, one, tx !== undefined));
        },
    };
}

function only([acceptance]: readonly Acceptance[]): Acceptance {
    return acceptance as Acceptance;
}

/** Milliseconds to rest before events are stored; none in a transaction of the application, in which others may wait for its locks. */
function restBefore(tx: Executor | undefined, events: readonly { readonly body: string }[]): number {
    return tx === undefined ? events.reduce((sum, { body }) => sum + restAfter(body), 0) : 0;
}

/** The exporters whose deliveries were left to dispatch; true where the store does not say whose. */
function leftToDispatch(accepted: readonly Acceptance[]): readonly string[] | true {
    const left = accepted.filter(({ deliveries, handedOut }) => handedOut.length < deliveries.length);
    return left.some(({ leftFor }) => leftFor === undefined) || left.flatMap(({ leftFor = [] }) => leftFor);
}

/**
 * Caches what the accepted deliveries send. Where exporters get different messages, only those of deliveries that were handed out can be cached: of
 * the others `accept` has told ids alone, and not which exporter each is for.
 */
function cacheMessages(
    messageCache: MessageCache,
    { event: given, traceparent, recipients }: NewEvent,
    { eventId, deliveries, handedOut, locked }: Acceptance,
    createdAt: Date,
): void {
    // This event was accepted before, or not yet.
    if (eventId !== given.id || locked === true) {
        return;
    }

    const event = { ...given, createdAt, ...(traceparent !== undefined && { traceparent }) };
    noteMade(event);

    // Without export types it is a `test`, which is for one exporter.
    const subscribers = ('types' in recipients && recipients.subscribers) || [];
    if (subscribers.every(({ message }) => message === null)) {
        messageCache.add(deliveries, event);
        return;
    }

    const messages = new Map(subscribers.map(({ exporterId, message }) => [exporterId, message]));
    for (const { deliveryId, exporterId } of handedOut) {
        messageCache.add([deliveryId], event, messages.get(exporterId));
    }
}

/** Accepts events in a span of the application's trace. Each event keeps the span's `traceparent`, so that the spans of its attempts refer to it. */
function tracedBy({ tracing, traces }: Pick<WebhooksContext, 'tracing' | 'traces'>) {
    type Accepted = Promise<readonly Acceptance[]>;
    type Accept = (events: readonly UnroutedEvent[]) => Accepted;

    /**
     * The trace of an event that is stored in a transaction of the application is stored outside of that, which would fail if this fails. It is not
     * waited for, since the transaction may have the only connection.
     */
    function acceptIn(traceparent: string | null, events: readonly UnroutedEvent[], joined: boolean, accept: Accept): Accepted {
        if (traceparent === null) {
            return accept(events);
        }

        void traces.keep(
            events.map(({ id }) => id),
            traceparent,
            joined,
        );
        return accept(events.map((event) => ({ ...event, traceparent })));
    }

    return (events: readonly UnroutedEvent[], tx: Executor | undefined, accept: Accept): Accepted =>
        tracing === null
            ? accept(events)
            : tracing.publishing(
                  events.map(({ kind }) => kind.name),
                  (traceparent) => acceptIn(traceparent, events, tx !== undefined, accept),
              );
}

/** Makes the caller's result of an acceptance, and emits it to the application. What the application does with it must not disturb publishing. */
function publishing({ dispatcher, onEvent, onError }: WebhooksContext) {
    async function emitAccepted({ id, kind }: UnroutedEvent, { eventId, deliveries }: Acceptance, inTransaction: boolean): Promise<void> {
        // An event that was accepted before is not emitted again.
        if (eventId === id) {
            await onEvent({ type: 'event.accepted', eventId, kind: kind.name, deliveries: deliveries.length, inTransaction });
        }
    }

    return (event: UnroutedEvent, acceptance: Acceptance, inTransaction: boolean): PublishedEvent => {
        emitAccepted(event, acceptance, inTransaction).catch(onError);
        return { eventId: acceptance.eventId, deliveries: acceptance.deliveries, wake: dispatcher.wake };
    };
}

function assertJoinable(tx: Executor | undefined): void {
    if (tx !== undefined) {
        assertTransaction(tx);
    }
}

/** Refuses events that cannot be stored together: two with the same idempotency key, or too many bytes. */
function assertTogether(events: readonly UnroutedEvent[]): void {
    const keys = events.flatMap((event) => (event.idempotency === undefined ? [] : [ownedKeyOf(event)]));
    if (new Set(keys).size < keys.length) {
        throw new ScanwireError('INVALID_INPUT', 'Events must each have an idempotency key of their own', { field: 'idempotencyKey' });
    }

    const bytes = events.reduce((sum, { body }) => sum + Buffer.byteLength(body), 0);
    if (bytes > MAX_BYTES) {
        throw new ScanwireError('INVALID_INPUT', `Bodies must be at most ${MAX_BYTES} bytes in all; they have ${bytes}`, {
            field: 'events',
        });
    }
}

/** Adds the index of the event to a refusal. */
function atIndex<T>(index: number, run: () => T): T {
    try {
        return run();
    } catch (error) {
        if (!(error instanceof ScanwireError)) {
            throw error;
        }
        const field = `[${index}]${error.field === undefined ? '' : `.${error.field}`}`;
        throw new ScanwireError(error.code, `Event ${index}: ${error.message}`, { field, cause: error });
    }
}
