import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { Acceptance, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { SHARES } from '../../../lib/webhooks/dispatching/slot-shares.ts';
import type { AcceptOptions, ChosenSubscriber, NewEvent, Recipients } from '../../../lib/webhooks/events/new-event.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { guarded } from '../database.ts';
import { isBehindOthers, isUniqueViolation, joinedError } from '../database-errors.ts';
import {
    ACCEPT,
    ACCEPT_ALIKE,
    ACCEPT_CHOSEN,
    ACCEPT_CHOSEN_WAITING,
    ACCEPT_ORDERED,
    ACCEPT_SINGLE,
    ACCEPT_SINGLE_CHOSEN,
    ACCEPT_SINGLE_CHOSEN_WAITING,
    ACCEPT_UNLOCKED,
    ACCEPT_WAITING,
    withTraces,
} from './acceptance-statements.ts';
import { dispatchedFromRow } from './dispatch.ts';
import type { Notifications } from './notifications.ts';

/** One event that {@link ACCEPT} has stored, or why it stored none. */
interface AcceptedRow {
    readonly outdated: boolean;
    /** Absent, as the two that follow, where a statement leaves no room for it. */
    readonly missing?: boolean;
    readonly duplicate?: boolean;
    readonly conflicting?: boolean;
    /** Order keys that somebody else has. */
    readonly locked?: readonly string[] | null;
    /** Null where all events were left out for that. */
    readonly eventId: string | null;
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
    { handOut, revision, lockTimeout }: Omit<AcceptOptions, 'tx'>,
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
    const statements = alone ? keepingTraces(db, newEvents) : db;
    const areJson = newEvents.every(({ isJson }) => isJson === true);
    const rows = await acceptedRows(statements, newEvents.map(eventParameter), parameters, { alone, areJson, lockTimeout });
    if (rows === null || rows[0]?.eventId === null) {
        return newEvents.map(leftOut);
    }
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
    const locked = new Set<unknown>(rows[0]?.locked);
    const accepted = rows.values();
    return newEvents.map((one) => (locked.has(one.orderKey) ? leftOut(one) : acceptanceFromRow(accepted.next().value as AcceptedRow)));
}

/** Has each statement keep the traces of the events as well. */
function keepingTraces(db: Executor, newEvents: readonly NewEvent[]): Executor {
    const traced = newEvents.flatMap(({ event: { id }, traceparent }) => (traceparent === undefined ? [] : [{ id, traceparent }]));
    if (traced.length === 0) {
        return db;
    }
    const traces = [traced.map(({ id }) => id), traced.map(({ traceparent }) => traceparent)];
    return { query: (text, values = []) => db.query(withTraces(text, values.length), [...values, ...traces]) };
}

function acceptanceFromRow({ eventId, deliveries }: AcceptedRow): Acceptance {
    return {
        eventId: eventId as string,
        deliveries: deliveries.map(({ id }) => id),
        handedOut: deliveries.filter(({ token }) => token !== null).map(handedOutAtOnce),
        leftFor: deliveries.filter(({ token }) => token === null).flatMap(({ exporterId }) => exporterId ?? []),
    };
}

function leftOut({ event }: NewEvent): Acceptance {
    return { eventId: event.id, deliveries: [], handedOut: [], leftFor: [], locked: true };
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

/** Chooses the statement that does the least work. @returns Null where the lock of a key did not come in time, and nothing was stored. */
async function acceptedRows(
    db: Executor,
    events: readonly EventParameter[],
    parameters: readonly unknown[],
    { alone, areJson, lockTimeout }: { readonly alone: boolean; readonly areJson: boolean; readonly lockTimeout: number | undefined },
): Promise<readonly AcceptedRow[] | null> {
    const statement = statementFor(events);
    if (lockTimeout !== undefined && (statement === ACCEPT_ORDERED || (statement === ACCEPT_CHOSEN && lockTimeout > 0))) {
        return await acceptedInTime(db, statement, events, parameters, lockTimeout);
    }
    const isOfOne = statement === ACCEPT_CHOSEN && events.length === 1;
    const types = isOfOne || (statement === ACCEPT && alone && (areJson || events.length === 1)) ? sharedTypes(events) : null;
    if (types === null) {
        return await queryAccept<AcceptedRow>(db, statement, [JSON.stringify(events), ...parameters]);
    }

    const [first, ...others] = events as readonly [EventParameter, ...EventParameter[]];
    if (others.length === 0) {
        return [await acceptedSingly(db, first, isOfOne ? ACCEPT_SINGLE_CHOSEN : ACCEPT_SINGLE, parameters)];
    }
    return await queryAccept<AcceptedRow>(db, ACCEPT_ALIKE, [...columnsOf(events), types, ...parameters]);
}

/** What {@link ACCEPT_ALIKE} stores. */
function columnsOf(events: readonly EventParameter[]): readonly unknown[] {
    return [
        events.map(({ id }) => id),
        `[${events.map(({ body }) => body).join()}]`,
        events.map(({ kind }) => kind),
        events.map(({ owner }) => owner),
    ];
}

async function acceptedInTime(
    db: Executor,
    statement: string,
    events: readonly EventParameter[],
    parameters: readonly unknown[],
    lockTimeout: number,
): Promise<readonly AcceptedRow[] | null> {
    const waitsForNone = lockTimeout === 0;
    const patience = waitsForNone && events.every(({ key }) => key === undefined) ? null : `${lockTimeout || KEY_TIMEOUT}ms`;
    try {
        return waitsForNone
            ? await queryAccept<AcceptedRow>(db, ACCEPT_UNLOCKED, [JSON.stringify(events), ...parameters, orderKeysOf(events), patience])
            : await acceptedPatiently(db, statement, events, [...parameters, patience]);
    } catch (error) {
        if (patience !== null && isBehindOthers(error)) {
            return null;
        }
        throw error;
    }
}

async function acceptedPatiently(
    db: Executor,
    statement: string,
    events: readonly EventParameter[],
    parameters: readonly unknown[],
): Promise<readonly AcceptedRow[]> {
    const [first, ...others] = events as readonly [EventParameter, ...EventParameter[]];
    if (statement === ACCEPT_CHOSEN && others.length === 0 && first.types !== null) {
        return [await acceptedSingly(db, first, ACCEPT_SINGLE_CHOSEN_WAITING, parameters)];
    }
    const list = statement === ACCEPT_CHOSEN ? ACCEPT_CHOSEN_WAITING : ACCEPT_WAITING;
    return await queryAccept<AcceptedRow>(db, list, [JSON.stringify(events), ...parameters]);
}

/**
 * Milliseconds for which an idempotency key is waited for by who has order keys already. Whoever has it may be waiting for one of those, and must not be the one
 * whom the server ends for it: that takes a second, as a server is set up by default.
 */
const KEY_TIMEOUT = 50;

function orderKeysOf(events: readonly EventParameter[]): readonly string[] {
    return [...new Set(events.flatMap(({ order_key }) => order_key ?? []))];
}

async function acceptedSingly(
    db: Executor,
    event: EventParameter,
    statement: string,
    parameters: readonly unknown[],
): Promise<AcceptedRow> {
    const { id, kind, body, owner, types } = event;
    const given = statement === ACCEPT_SINGLE ? [types] : [JSON.stringify(types), ...choiceParameters(event)];
    const rows = await queryAccept<SingleRow>(db, statement, [id, kind, body, owner, ...given, ...parameters]);
    return {
        outdated: false,
        ...rows[0],
        eventId: rows[0]?.acceptedAs ?? id,
        deliveries: rows.filter((row) => row.id !== null),
    };
}

function choiceParameters({ subscribers, key, digest }: EventParameter): readonly unknown[] {
    const messages = subscribers.filter(({ content_type }) => content_type !== undefined);
    return [
        JSON.stringify(subscribers.map(({ exporter_id }) => exporter_id)),
        messages.length === 0 ? null : JSON.stringify(messages),
        key ?? null,
        digest ?? null,
    ];
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
