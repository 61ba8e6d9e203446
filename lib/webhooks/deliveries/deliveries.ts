import { ScanwireError } from '../../errors.ts';
import { checked } from '../../schema-validation.ts';
import { RESERVATION_TIMES } from '../dispatching/reservations.ts';
import type { EventSummary } from '../events/new-event.ts';
import { maskedBody, maskedMessage } from '../messages/formatted-message.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import type { OutcomeCode, Timings } from '../outcomes/outcome.ts';
import { type AnsweredAttempt, answeredAttempts } from '../outcomes/response-bodies.ts';
import { storeRefusals } from '../store-refusals.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { type Activity, type ActivityQuery, activityOf } from './activity.ts';
import { type AttemptLists, attemptListsOf } from './attempt-lists.ts';
import { heeded, wholeFilterSchema, wholeQuerySchema } from './delivery-filter.ts';
import type { DeliveryState } from './delivery-states.ts';
import type { Delivery } from './delivery-store.ts';
import { countIn, type DeliveryCount } from './kept-counts.ts';
import { type Replays, replaysOf } from './replays.ts';

/** A delivery with all its attempts, first to last. */
export interface DeliveryHistory extends Delivery {
    readonly history: readonly AnsweredAttempt[];
    /** Of a test that this process is sending: the times of the phases that are over, and of all of it so far. Null for everything else. */
    readonly progress: Timings | null;
}

/** Which deliveries are asked for. */
export interface DeliveryFilter {
    readonly state?: DeliveryState;
    readonly exporterId?: string;
    readonly kind?: string;
    readonly eventId?: string;
    /** Those whose events were accepted at this time or later. */
    readonly since?: Date;
    /** Those whose events were accepted before this time. */
    readonly until?: Date;
    /** What the last attempt came to, as in `lastCode`. */
    readonly outcome?: OutcomeCode;
    /** Id of a delivery: only older ones. */
    readonly after?: string;
    /** Only deliveries to these exporters; none when the list is empty. @throws ScanwireError `MISCONFIGURED` with a store that does not heed it. */
    readonly exporterIds?: readonly string[];
}

/** Reads of many deliveries, newest first. */
export interface DeliveryQuery extends DeliveryFilter {
    readonly limit: number;
}

/** What a delivery sends, as far as people may see it. */
export interface DeliveryMessage {
    /** The body, with the secret of its format masked. Null once the event was erased, and where the message could not be made. */
    readonly body: string | null;
    /** How many bytes of it are sent; null where `body` is. */
    readonly bytes: number | null;
    /**
     * The headers as the last attempt would send them with the settings that the exporter has now; before the first attempt, as that one will.
     * Secret values are masked, and the headers of the connection are left out. Null where the body or the exporter is gone.
     */
    readonly headers: HeaderPairs | null;
    /** When the body of its event was erased; null while it is there. */
    readonly erasedAt: Date | null;
    /** Why the message could not be made, so that nothing is sent; else null. */
    readonly failure: string | null;
}

/** Reads of deliveries, and their replay. */
export interface Deliveries {
    /** Newest first, 100 unless `limit` says otherwise, at most 1,000. @throws ScanwireError `INVALID_INPUT` with the field. */
    list(query?: Partial<DeliveryQuery>): Promise<readonly Delivery[]>;
    /** How many there are of them. @throws ScanwireError `INVALID_INPUT` with the field. */
    count(filter?: DeliveryFilter): Promise<DeliveryCount>;
    /**
     * What became of those that were accepted lately. @throws ScanwireError `INVALID_INPUT` with the field; `MISCONFIGURED` when the store
     *     does not count them.
     */
    activity(query?: ActivityQuery): Promise<Activity>;
    /** @throws ScanwireError `NOT_FOUND`. */
    show(id: string): Promise<DeliveryHistory>;
    /**
     * What it sends. @throws ScanwireError `NOT_FOUND`, `UNSEALABLE`, `INVALID_INPUT` for settings of its exporter with which nothing can be sent;
     *     `MISCONFIGURED` when the store does not show it.
     */
    message(id: string): Promise<DeliveryMessage>;
    /** Attempts of many deliveries. */
    readonly attempts: AttemptLists;
    /** Replays of many deliveries. */
    readonly replays: Replays;
    /**
     * Sends the same bytes under the same message id once more. A delivery that waits for its next try is sent at once.
     *
     * @throws ScanwireError `NOT_FOUND`; `CONFLICT` while it is being sent, or waits and has had no attempt yet.
     */
    replay(id: string): Promise<Delivery>;
    /**
     * Ends for good, as `cancelled`, a delivery that waits, is held or has failed. Nothing sends or replays it any more, and others with its
     * order key go on.
     *
     * @throws ScanwireError `NOT_FOUND`; `CONFLICT` while it is being sent, or when it was delivered, cancelled or erased; `MISCONFIGURED` when
     *     the store cannot.
     */
    discard(id: string): Promise<Delivery>;
    /** Whether the store can discard deliveries. */
    readonly discards: boolean;
}

/** The part of a filter that may come from outside: a request, the command line. */
export type AskedFilter = Omit<DeliveryFilter, 'exporterIds'>;
/** The part of a query that may come from outside: a request, the command line. */
export type AskedQuery = Omit<DeliveryQuery, 'exporterIds'>;

/** An event whose body was erased. */
export interface ErasedEvent extends EventSummary {
    readonly erasedAt: Date;
    /** How many of its deliveries this has ended, as `erased`. */
    readonly ended: number;
}

/** Events that were accepted. Methods reject with ScanwireError `NOT_FOUND` for an unknown id. */
export interface Events {
    show(id: string): Promise<EventSummary>;
    /**
     * Erases the body of an event for good; its row and those of its deliveries stay. Deliveries that have not ended, `held` ones too, become
     * `erased`. Once this has resolved, no attempt begins any more, but one that is under way may still reach its receiver within its time-out.
     */
    erase(id: string): Promise<ErasedEvent>;
}

/** The deliveries of a store. */
export function deliveriesOf(context: WebhooksContext): Deliveries {
    const { deliveries: store, dispatcher, tests } = context;
    return {
        async list(query) {
            return store.list(heeded(checked(wholeQuerySchema, query), store));
        },

        async count(filter) {
            return await countIn(store, heeded(checked(wholeFilterSchema, filter), store));
        },

        activity: activityOf(context),

        async show(id) {
            const [delivery, history] = await Promise.all([store.get(id), answeredAttempts(store, id)]);
            if (delivery === null) {
                throw storeRefusals.unknownDelivery();
            }

            return { ...delivery, history, progress: delivery.finishedAt === null ? tests.timings(id) : null };
        },

        message: (id) => messageOf(id, context),
        discards: Boolean(store.discard),
        attempts: attemptListsOf(context),
        replays: replaysOf(context),

        async replay(id) {
            const delivery = await store.replay(id);
            dispatcher.wake();
            return delivery;
        },

        async discard(id) {
            if (!store.discard) {
                throw new ScanwireError('MISCONFIGURED', 'Cannot discard a delivery: the store does not');
            }
            const delivery = await store.discard(id);
            dispatcher.wake();
            return delivery;
        },
    };
}

async function messageOf(id: string, context: WebhooksContext): Promise<DeliveryMessage> {
    const { deliveries: store, exporters } = context;
    if (!store.content) {
        throw new ScanwireError('MISCONFIGURED', 'Cannot show what a delivery sends: the store does not show it');
    }
    const [content, attempts] = await Promise.all([store.content(id), store.attempts(id)]);
    if (content === null) {
        throw storeRefusals.unknownDelivery();
    }

    const { event, message, exporterId } = content;
    const failure = message?.failure ?? null;
    if (event.erasedAt !== null || failure !== null) {
        return { body: null, bytes: null, headers: null, erasedAt: event.erasedAt, failure };
    }
    const body = maskedBody(event.body, message);
    const exporter = await exporters.get(exporterId);
    const time = attempts.at(-1)?.startedAt ?? (await store.now());
    const sent = exporter && maskedMessage(event, message, { exporter, time }, context);
    return { body, bytes: sent?.bytes ?? Buffer.byteLength(body), headers: sent?.headers ?? null, erasedAt: null, failure };
}

/** The events of a store. */
export function eventsOf(context: WebhooksContext): Events {
    const { deliveries: store, dispatcher, messageCache, session, sleep } = context;
    return {
        async show(id) {
            const event = await store.event(id);
            if (event === null) {
                throw storeRefusals.unknownEvent();
            }

            return event;
        },

        async erase(id) {
            const event = await store.erase(id);
            // Deliveries of their order keys may be due now.
            dispatcher.wake();
            await messageCache.forgetEvent(id);
            // Another process that has accepted the event may have its deliveries with their reservations, and may begin to send them for so long
            // (see reservations.ts).
            if (event.ended > 0 && (await session.hasOthers().catch(() => true))) {
                await sleep(RESERVATION_TIMES.beginWithin);
            }

            return event as ErasedEvent;
        },
    };
}
