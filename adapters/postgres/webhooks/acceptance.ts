import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { Acceptance, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import type { AcceptOptions, ChosenSubscriber, NewEvent, Recipients } from '../../../lib/webhooks/events/new-event.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { guarded } from '../database.ts';
import { isUniqueViolation, joinedError } from '../database-errors.ts';
import { prepared } from '../prepared.ts';
import { DISPATCH, dispatchedFromRow } from './dispatch.ts';
import type { Notifications } from './notifications.ts';

/**
 * `$1` is a JSON array of events. It is passed as text, since the application's driver may encode a parameter of type `json` a second time. `$2`
 * is the revision by which subscribers were chosen, or null. `$3` are the milliseconds within which an attempt must have begun, null when nothing
 * is to be handed out. The others are as in {@link DISPATCH}.
 */
const accepting = (name: string): string =>
    prepared(`
select a.outdated, a.missing, a.duplicate, a.conflicting, a.event_id as "eventId", a.deliveries
from scanwire.${name}($1::text::json, $2, $3::double precision * interval '1 millisecond', $4, $5, $6, $7) a`);

/** For events that go to no subscriber and have no keys of the caller's. */
const ACCEPT: string = accepting('accept_events');

/** The same for others. */
const ACCEPT_CHOSEN: string = accepting('accept_chosen_events');

/** The same for events of which some have order keys. */
const ACCEPT_ORDERED: string = accepting('accept_ordered_events');

/**
 * The same for events that are all for exporters of the same types, outside a transaction of the application: `$1` their ids, `$2` as `$1` of
 * {@link ACCEPT}, `$3` the types, then as there. An event that is there already violates the key of its table.
 */
const ACCEPT_ALIKE: string = prepared(`
select a.outdated, a.event_id as "eventId", a.deliveries
from scanwire.accept_alike_events($1, $2::text::json, $3, $4, $5::double precision * interval '1 millisecond', $6, $7, $8, $9) a`);

/**
 * The same for one event: `$1` its id, `$2` its kind, `$3` its body, `$4` its owner, `$5` the types, then as in {@link ACCEPT} from `$2` on.
 * Answers with its deliveries.
 */
const ACCEPT_SINGLE: string = prepared(`
select
    a.outdated, a.delivery_id as id, a.exporter_id as "exporterId", a.collector, a.token,
    extract(epoch from a.begin_by)::double precision * 1000 as "beginBy", a.generation, a.settings
from scanwire.accept_single_event($1, $2, $3, $4, $5, $6, $7::double precision * interval '1 millisecond', $8, $9, $10, $11) a`);

/**
 * The same for one event that exporters chose, or with a key of the caller's: the types are followed by the ids of the exporters that chose it, a JSON
 * array of the messages of those that get another body, or null, the key, or null, and its digest. The types and the ids are JSON arrays as well: this
 * runs in transactions of the application, whose query builder may make several parameters of a list.
 */
const ACCEPT_SINGLE_CHOSEN: string = prepared(`
select
    a.outdated, a.conflicting, a.duplicate, a.accepted_as as "acceptedAs",
    a.delivery_id as id, a.exporter_id as "exporterId", a.collector, a.token,
    extract(epoch from a.begin_by)::double precision * 1000 as "beginBy", a.generation, a.settings
from scanwire.accept_single_chosen_event(
    $1, $2, $3, $4, array(select json_array_elements_text($5::text::json)), array(select json_array_elements_text($6::text::json)::uuid),
    $7::text::json, $8, $9, $10, $11::double precision * interval '1 millisecond', $12, $13, $14, $15
) a`);

/** One event that {@link ACCEPT} has stored, or why it stored none. */
interface AcceptedRow {
    readonly outdated: boolean;
    /** Absent, as the two that follow, where a statement leaves no room for it. */
    readonly missing?: boolean;
    readonly duplicate?: boolean;
    readonly conflicting?: boolean;
    readonly eventId: string;
    readonly deliveries: readonly AcceptedDelivery[];
}

/** One delivery of an event that was accepted alone, or that there is none, and why. */
interface SingleRow extends Omit<AcceptedRow, 'eventId' | 'deliveries'>, AcceptedDelivery {
    /** The event of its key; absent where there are no keys. */
    readonly acceptedAs?: string;
}

interface AcceptedDelivery {
    readonly id: string;
    /** Null or absent, as all that follows but the token, where the event was accepted before. */
    readonly exporterId?: string | null;
    readonly collector: string;
    /** Null when the delivery was not handed out; the fields that follow then mean nothing. */
    readonly token: string | null;
    readonly beginBy: number | null;
    readonly generation: number | null;
    readonly settings: number | null;
}

/**
 * Stores events with their deliveries. What is too long for a statement is refused before one is sent.
 *
 * @param alone Whether the statement has a transaction to itself, which an error may end.
 */
export async function accept(
    db: Executor,
    newEvents: readonly NewEvent[],
    { handOut, revision }: Omit<AcceptOptions, 'tx'>,
    alone = false,
): Promise<readonly Acceptance[]> {
    if (newEvents.length === 0) {
        return [];
    }
    if (newEvents.some(({ recipients }) => 'exporterId' in recipients && !isUuid(recipients.exporterId))) {
        throw storeRefusals.unknownExporter();
    }

    const characters = charactersOf(newEvents);
    if (characters > MAX_CHARACTERS) {
        throw storeRefusals.messagesTooLong(MAX_CHARACTERS, characters);
    }

    const { beginWithin = null, window = null, breakerAfter = null } = handOut ?? {};
    const parameters = [revision ?? null, beginWithin, window, breakerAfter, SHARES.defaultSlots, SHARES.slowAfter];
    const rows = await acceptedRows(db, newEvents.map(eventParameter), parameters, alone);
    if (rows[0]?.outdated === true) {
        throw storeRefusals.subscribersChanged();
    }
    if (rows[0]?.conflicting === true) {
        throw storeRefusals.keyTaken();
    }
    if (rows[0]?.missing === true) {
        throw storeRefusals.unknownExporter();
    }
    if (rows[0]?.duplicate === true) {
        throw storeRefusals.eventExists();
    }
    return rows.map(({ eventId, deliveries }) => ({
        eventId,
        deliveries: deliveries.map(({ id }) => id),
        handedOut: deliveries.filter(({ token }) => token !== null).map(handedOutAtOnce),
        leftFor: deliveries.filter(({ token }) => token === null).flatMap(({ exporterId }) => exporterId ?? []),
    }));
}

/**
 * Maximum number of characters of bodies and messages in a statement. It has the message of each exporter, also where several have the same. As JSON a
 * text may become twice as long, and JavaScript has no texts of more than 2^29 characters.
 */
const MAX_CHARACTERS = 200_000_000;

function charactersOf(newEvents: readonly NewEvent[]): number {
    let characters = 0;
    for (const { event, recipients } of newEvents) {
        characters += event.body.length;
        for (const { message } of subscribersOf(recipients)) {
            characters += message?.body.length ?? 0;
        }
    }
    return characters;
}

/** Chooses the statement that does the least work. */
async function acceptedRows(
    db: Executor,
    events: readonly EventParameter[],
    parameters: readonly unknown[],
    alone: boolean,
): Promise<readonly AcceptedRow[]> {
    const statement = statementFor(events);
    const isOfOne = statement === ACCEPT_CHOSEN && events.length === 1;
    const types = isOfOne || (statement === ACCEPT && alone) ? sharedTypes(events) : null;
    if (types === null) {
        return await queryAccept<AcceptedRow>(db, statement, [JSON.stringify(events), ...parameters]);
    }

    const [first, ...others] = events as readonly [EventParameter, ...EventParameter[]];
    if (others.length === 0) {
        return [await acceptedSingly(db, first, isOfOne, parameters)];
    }
    return await queryAccept<AcceptedRow>(db, ACCEPT_ALIKE, [events.map(({ id }) => id), JSON.stringify(events), types, ...parameters]);
}

async function acceptedSingly(
    db: Executor,
    event: EventParameter,
    isChosen: boolean,
    parameters: readonly unknown[],
): Promise<AcceptedRow> {
    const { id, kind, body, owner, types, subscribers, key, digest } = event;
    const messages = subscribers.filter(({ content_type }) => content_type !== undefined);
    const choice = [
        JSON.stringify(subscribers.map(({ exporter_id }) => exporter_id)),
        messages.length === 0 ? null : JSON.stringify(messages),
        key ?? null,
        digest ?? null,
    ];
    const values = [id, kind, body, owner, ...(isChosen ? [JSON.stringify(types), ...choice] : [types]), ...parameters];
    const rows = await queryAccept<SingleRow>(db, isChosen ? ACCEPT_SINGLE_CHOSEN : ACCEPT_SINGLE, values);
    return {
        outdated: false,
        ...rows[0],
        eventId: rows[0]?.acceptedAs ?? id,
        deliveries: rows.filter((row) => row.id !== null),
    };
}

function statementFor(events: readonly EventParameter[]): string {
    if (events.some(({ order_key }) => order_key !== undefined)) {
        return ACCEPT_ORDERED;
    }
    return events.every(({ key, subscribers }) => key === undefined && subscribers.length === 0) ? ACCEPT : ACCEPT_CHOSEN;
}

/** The types that all of the events are for; null where they differ, or one is for an exporter alone. */
function sharedTypes([first, ...others]: readonly EventParameter[]): readonly string[] | null {
    const types = first?.types ?? null;
    return others.every((other) => String(other.types) === String(types)) ? types : null;
}

function handedOutAtOnce({
    id: deliveryId,
    exporterId = '',
    collector,
    token,
    beginBy,
    generation,
    settings,
}: AcceptedDelivery): HandedOut {
    return dispatchedFromRow({
        deliveryId,
        exporterId: exporterId as string,
        collector,
        attempt: 1,
        singleAttempt: false,
        round: 1,
        token,
        beginBy,
        generation: generation ?? 0,
        settings: settings ?? 0,
    });
}

/** The same in a transaction of the application. */
export async function acceptJoined(
    tx: Executor,
    newEvents: readonly NewEvent[],
    { revision }: Pick<AcceptOptions, 'revision'>,
    notifications?: Notifications,
): Promise<readonly Acceptance[]> {
    const statements = guarded(tx, {}, joinedError);
    const accepted = await accept(statements, newEvents, revision === undefined ? {} : { revision });
    if (accepted.some((one) => one.deliveries.length > 0)) {
        await notifications?.notify(statements);
    }
    return accepted;
}

type EventParameter = ReturnType<typeof eventParameter>;

function eventParameter({ event, owner = null, idempotency, orderKey, recipients }: NewEvent, index: number) {
    const { id, kind, body } = event;
    const types = 'types' in recipients ? recipients.types : null;
    const exporterId = 'exporterId' in recipients ? recipients.exporterId : null;
    const subscribers = subscribersOf(recipients).map(subscriberParameter);
    return { index, id, kind, body, owner, types, exporter_id: exporterId, ...idempotency, order_key: orderKey, subscribers };
}

/** The subscribers of an event; a `test` has a single one. */
function subscribersOf(recipients: Recipients): readonly ChosenSubscriber[] {
    if ('types' in recipients) {
        return recipients.subscribers ?? [];
    }

    const { exporterId, message = null } = recipients;
    return message === null ? [] : [{ exporterId, message }];
}

function subscriberParameter({ exporterId, message }: ChosenSubscriber) {
    const { contentType, headers, body, failure } = message ?? {};
    return { exporter_id: exporterId, content_type: contentType, headers, body, failure };
}

/** The statement looks by itself for ids that are known already. Only an id that somebody else accepts in the same moment violates the unique index. */
async function queryAccept<Row>(db: Executor, statement: string, parameters: unknown[]): Promise<readonly Row[]> {
    try {
        const { rows } = await db.query<Row>(statement, parameters);
        return rows;
    } catch (error) {
        throw isUniqueViolation(error) ? storeRefusals.eventExists(error) : error;
    }
}
