import { ScanwireError } from '../../errors.ts';
import type { Executor } from '../../transaction.ts';
import type { StoredExporter } from '../exporters/exporter.ts';
import { type FormatEvent, formatEvent } from '../formats/format.ts';
import type { FormattedMessage } from '../messages/formatted-message.ts';
import { type MessageMaker, messageMaker } from '../messages/formatted-message.ts';
import type { RuleSet } from '../setting-values.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { type EventKind, isNoticeKind, typesFor } from './event-kinds.ts';
import type { ChosenSubscriber, IdempotencyKey, NewEvent } from './new-event.ts';
import { type CompiledSubscription, compileSubscription, explainSubscription } from './subscription.ts';

/** An event before it is routed: nobody has chosen yet which exporters get it. */
export interface UnroutedEvent {
    readonly id: string;
    readonly kind: EventKind;
    /** Exact text. */
    readonly body: string;
    /** Of an event about an investigation: the set of detection rules that raised it, null where that is not known; null for other events. */
    readonly rules: RuleSet | null;
    /** Whose it is, null for the deployment's. */
    readonly owner: string | null;
    readonly idempotency?: IdempotencyKey;
    /** Ordered exporters get events with the same key one after another. */
    readonly orderKey?: string;
    /** The span that publishes it. */
    readonly traceparent?: string;
    /** The exporter that the event is about; it never gets the event. */
    readonly about?: string;
}

/** Whether an exporter gets an event, and if not, why not: a sentence. */
export type Choice = { readonly wanted: true } | { readonly wanted: false; readonly reason: string };

/** Stores events for these recipients, or stores nothing. */
type Accept<Result> = (newEvents: readonly NewEvent[], revision: { readonly revision?: number }) => Promise<Result>;

/** Brings events to the exporters that choose them, each in its format. */
export interface EventRouting {
    /**
     * Finds the exporters that choose these events, and has the events accepted for them. If what exporters choose has changed meanwhile, it does
     * so again.
     *
     * @param accept Stores the events for these recipients, or stores nothing.
     * @param tx The transaction in which it does so.
     */
    route<Result>(events: readonly UnroutedEvent[], accept: Accept<Result>, tx?: Executor): Promise<Result>;
    /** Whether this process has the formats of all exporters that choose the event; a worker has not been given those of the application. */
    hasFormatsFor(event: UnroutedEvent): Promise<boolean>;
}

/** A subscriber, ready to be asked about an event. */
interface PreparedSubscriber {
    readonly exporter: StoredExporter;
    readonly wants: CompiledSubscription;
    /** Shared by those with the same format. */
    readonly make: MessageMaker;
}

interface KnownSubscribers {
    /** How often subscribers had changed in the store; undefined in one that keeps none. */
    readonly revision: number | undefined;
    readonly subscribers: readonly PreparedSubscriber[];
    /** When they were read, by `monotonic`. */
    readonly readAt: number;
    /** The store's time, as far as is known. */
    now(): Date;
}

type Context = Pick<WebhooksContext, 'exporters' | 'reservations' | 'monotonic' | 'formats' | 'vendor' | 'maxBodyBytes' | 'onError'>;

/** Milliseconds after which subscribers that lack a format are read anew. That the store has others is told only by accepting something. */
const LACKING_FOR = 1_000;

/** How often events are routed before giving up: subscribers may change between routing and acceptance, but hardly ever so many times in a row. */
const MAX_ROUTINGS = 5;

/** The routing by what exporters of the store choose. That is read when the first event is accepted, and again only when it has changed. */
export function eventRouting(context: Context): EventRouting {
    const { exporters, reservations, monotonic } = context;
    const report = unusableSubscriptions(context.onError);
    let reading: Promise<KnownSubscribers> | null = null;
    let known: KnownSubscribers | null = null;

    async function read(tx?: Executor): Promise<KnownSubscribers> {
        const found = await exporters.subscribers?.(tx);
        const answered = monotonic();
        const at = found === undefined ? 0 : found.at.getTime() - answered;
        return {
            revision: found?.revision,
            subscribers: preparedSubscribers(found?.exporters ?? [], context, report),
            readAt: answered,
            now: () => new Date(at + monotonic()),
        };
    }

    /** The current subscribers. Many publishes at the same time share one read. A read that fails is not remembered. */
    async function current(): Promise<KnownSubscribers> {
        reading ??= read();
        const mine = reading;
        try {
            const found = known ?? (await mine);
            known = mine === reading ? found : known;
            return found;
        } catch (error) {
            forget(mine);
            throw error;
        }
    }

    /** Forgets what this read has brought, unless another one has replaced it already. */
    function forget(former: Promise<KnownSubscribers> | null): void {
        if (reading === former) {
            reading = null;
            known = null;
        }
    }

    /**
     * The subscribers for an event that is accepted in a transaction of the application: those that are known; or, where none are, or where they
     * have proved to be old (`again`), those that the transaction sees. The common read is begun for later events and not waited for: it needs a
     * connection, and the transaction may have the only one. What the transaction sees is not remembered for others: it may be older than what is
     * known, or may never be committed.
     */
    async function currentIn(tx: Executor, again: boolean): Promise<KnownSubscribers> {
        if (known !== null && !again) {
            return known;
        }
        current().catch(() => {});
        return await read(tx);
    }

    function chosenSubscribers(unrouted: UnroutedEvent, subscribers: readonly PreparedSubscriber[], at: Date): readonly ChosenSubscriber[] {
        const event = formatInput(unrouted, at);
        const made = new Map<MessageMaker, FormattedMessage | null>();
        return choosing(unrouted, event, subscribers).map(({ exporter: { id }, make }) => {
            const message = made.get(make) ?? make(event);
            made.set(make, message);
            return { exporterId: id, message };
        });
    }

    const route = async <Result>(
        events: readonly UnroutedEvent[],
        accept: Accept<Result>,
        tx?: Executor,
        routings = 1,
    ): Promise<Result> => {
        const { revision, subscribers, now } = await (tx === undefined ? current() : currentIn(tx, routings > 1));
        const used = reading;
        const at = reservations.now() ?? now();
        const newEvents = events.map((event) => newEvent(event, subscribers.length === 0 ? [] : chosenSubscribers(event, subscribers, at)));
        try {
            return await accept(newEvents, revision === undefined ? {} : { revision });
        } catch (error) {
            if (routings === MAX_ROUTINGS || !isRevisionConflict(error)) {
                throw error;
            }
        }
        forget(used);
        return route(events, accept, tx, routings + 1);
    };

    return {
        route: (events, accept, tx) => route(events, accept, tx),

        async hasFormatsFor(event) {
            const found = await current();
            const has = hasFormats(event, found);
            if (has || monotonic() - found.readAt < LACKING_FOR) {
                return has;
            }
            forget(reading);
            return hasFormats(event, await current());
        },
    };

    function hasFormats(event: UnroutedEvent, { subscribers, now }: KnownSubscribers): boolean {
        const chosen = choosing(event, formatInput(event, now()), subscribers);
        return chosen.every(({ exporter: { format } }) => context.formats.has(format));
    }
}

/** The subscribers that choose an event. */
function choosing(unrouted: UnroutedEvent, event: FormatEvent, subscribers: readonly PreparedSubscriber[]): readonly PreparedSubscriber[] {
    return subscribers.filter(({ exporter, wants }) => refusal(exporter, unrouted) === null && wants(event));
}

/** Whether events were not accepted because subscribers have changed since the events were routed. */
function isRevisionConflict(error: unknown): boolean {
    return error instanceof ScanwireError && error.code === 'CONFLICT' && error.field === 'revision';
}

/** Tells of a stored subscription that cannot be used, once for each exporter as long as it stays as it is. */
type ReportUnusable = (exporter: StoredExporter) => void;

function unusableSubscriptions(onError: Context['onError']): ReportUnusable {
    const reported = new Map<string, string>();
    return ({ id, kinds, filter }) => {
        const chosen = JSON.stringify([kinds, filter]);
        if (reported.get(id) !== chosen) {
            reported.set(id, chosen);
            const message = `Kinds or filter stored for exporter ${id} cannot be used: it gets no events until they are set anew`;
            onError(new ScanwireError('MISCONFIGURED', message, { field: 'kinds' }));
        }
    };
}

/**
 * An exporter whose stored subscription cannot be used chooses nothing. Somebody may have written into its row past all checks, and that must not
 * stop publishing for all others.
 */
function guardedSubscription(exporter: StoredExporter, report: ReportUnusable): CompiledSubscription {
    let wants: CompiledSubscription | undefined;
    return (event) => {
        try {
            wants ??= compileSubscription(exporter);
            return wants(event);
        } catch {
            report(exporter);
            return false;
        }
    };
}

function preparedSubscribers(
    exporters: readonly StoredExporter[],
    context: Context,
    report: ReportUnusable,
): readonly PreparedSubscriber[] {
    const makers = new Map<unknown, MessageMaker>();
    return exporters.map((exporter) => {
        const key = exporter.template ?? exporter.format;
        const make = makers.get(key) ?? messageMaker(exporter, context);
        makers.set(key, make);
        return { exporter, wants: guardedSubscription(exporter, report), make };
    });
}

function newEvent(event: UnroutedEvent, chosen: readonly ChosenSubscriber[]): NewEvent {
    const { id, kind, body, owner, idempotency, orderKey, traceparent } = event;
    // A notice goes to no export type: only subscribers that name its kind get it.
    const types = isNoticeKind(kind.name) ? [] : typesFor(kind, event.rules);
    return {
        event: { id, kind: kind.name, body },
        isJson: true,
        ...(owner !== null && { owner }),
        ...(idempotency !== undefined && { idempotency }),
        ...(orderKey !== undefined && { orderKey }),
        ...(traceparent !== undefined && { traceparent }),
        recipients: { types, ...(chosen.length > 0 && { subscribers: chosen }) },
    };
}

/** The event as filters and formats see it. */
export function formatInput({ id, kind, body }: Pick<UnroutedEvent, 'id' | 'kind' | 'body'>, time: Date): FormatEvent {
    return formatEvent({ kind: kind.name, id, time, text: body });
}

const STOPPED = { byUser: 'It is stopped', byOutcome: 'It was stopped by an outcome: what it would get is held until it is replayed' };

/** Whether an exporter gets an event, and if not, why not. */
export function choiceOf(exporter: StoredExporter, event: UnroutedEvent): Choice {
    const reasons = [
        refusal(exporter, event),
        ...unwanted(exporter, event),
        exporter.state === 'running' ? null : STOPPED[exporter.stopReason === null ? 'byUser' : 'byOutcome'],
    ];
    const reason = reasons.find((one) => one !== null);
    return reason === undefined ? { wanted: true } : { wanted: false, reason: reason as string };
}

/** Why what the exporter has chosen is another event; nulls where it is this one. */
function unwanted(exporter: StoredExporter, event: UnroutedEvent): readonly (string | null)[] {
    let explained: ReturnType<typeof explainSubscription>;
    try {
        explained = explainSubscription(exporter, { kind: event.kind.name, body: JSON.parse(event.body) });
    } catch {
        // As with {@link guardedSubscription}.
        return ['Its stored kinds or filter cannot be used'];
    }

    const unfit = explained.failed.map(({ field, condition, holds, found }) => {
        return `${field} (${condition}) ${holds ? 'holds, but should not,' : 'does not hold'} for ${found} ${found === 1 ? 'value' : 'values'} found`;
    });
    return [
        explained.kindWanted ? null : `Its kinds do not match ${event.kind.name}`,
        unfit.length === 0 ? null : `Its filter does not match: ${unfit.join(', ')}`,
    ];
}

/** Why an exporter may not get an event, whatever it wants; null when it may. */
function refusal({ id, owner, type }: StoredExporter, event: Pick<UnroutedEvent, 'kind' | 'rules' | 'owner' | 'about'>): string | null {
    const { name } = event.kind;
    if (id === event.about) {
        return 'It gets no events about itself';
    }
    if (owner !== null && owner !== event.owner) {
        return `It gets events of the owner ${owner} only`;
    }
    if (!isNoticeKind(name) && !typesFor(event.kind, event.rules).includes(type)) {
        return `Its type ${type} does not get investigations of the rules ${event.rules}`;
    }
    return null;
}
