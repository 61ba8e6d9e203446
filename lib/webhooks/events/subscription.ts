import { ScanwireError } from '../../errors.ts';
import { type EventKind, type EventKinds, isNoticeKind, testEvent } from './event-kinds.ts';
import { type CompiledFilter, checkFilter, compileFilter, type FailedCondition, type Filter, failedConditions } from './filter.ts';

/** Kinds and filter of an exporter: which events it wants, of those that its export type lets it have. */
export interface Subscription {
    /** Names of event kinds, each in full or with `*` in place of its end; null for every kind but those of notices. */
    readonly kinds: readonly string[] | null;
    /** Asked of the body; null for every body. */
    readonly filter: Filter | null;
}

/** What a subscription looks at in an event. */
export interface CandidateEvent {
    readonly kind: string;
    /** Parsed from JSON; read only when a filter asks. */
    readonly body: unknown;
}

const MAX_KINDS = 100;

/** Whether exporters may choose the kind; a `test` is sent to the one that it tests. */
export function isSubscribable(kind: EventKind): boolean {
    return kind !== testEvent;
}

/** The kind of that name, if `admits` lets it through. @throws ScanwireError `INVALID_INPUT` for any other. */
export function kindAmong(kinds: EventKinds, name: string, admits: (kind: EventKind) => boolean): EventKind {
    const kind = kinds.get(name);
    if (kind === undefined || !admits(kind)) {
        const known = [...kinds.values()].filter(admits).map(({ name }) => name);
        throw new ScanwireError('INVALID_INPUT', `Unknown event kind; known: ${known.join(', ')}`, { field: 'kind' });
    }

    return kind;
}

/** Whether a list of kinds has this one. */
export function wantsKind(kinds: Subscription['kinds'], kind: string): boolean {
    if (kinds === null) {
        return !isNoticeKind(kind);
    }

    return kinds.some((name) => name === kind || (name.endsWith('*') && kind.startsWith(name.slice(0, -1)) && !isNoticeKind(kind)));
}

/**
 * The subscription as it is kept.
 *
 * @param given Unchecked.
 * @param table All event kinds of the deployment. A name or a `*` that none of them fits is refused, and so is a path of the filter that
 *     none of the chosen ones has.
 * @throws ScanwireError `INVALID_INPUT` with the field, for example `kinds[1]` or `filter.any[0].value`.
 */
export function checkSubscription(
    { kinds, filter }: { readonly kinds: unknown; readonly filter: unknown },
    table: EventKinds,
): Subscription {
    const known = [...table.values()].filter(isSubscribable);
    const checkedKinds = kinds === null ? null : checkKinds(kinds, known);
    const chosen = known.filter(({ name }) => wantsKind(checkedKinds, name));
    return { kinds: checkedKinds, filter: filter === null ? null : checkFilter(filter, chosen) };
}

function checkKinds(kinds: unknown, known: readonly EventKind[]): readonly string[] {
    if (!Array.isArray(kinds) || kinds.length === 0 || kinds.length > MAX_KINDS) {
        throw refused('kinds', `Kinds must be a list of 1 to ${MAX_KINDS} names of event kinds`);
    }

    for (const [index, name] of kinds.entries()) {
        const field = `kinds[${index}]`;
        if (typeof name !== 'string' || !/^[\w.-]{0,64}\*?$/.test(name) || name === '') {
            throw refused(field, `Kinds[${index}] must be the name of an event kind, or its beginning and *`);
        }

        if (kinds.indexOf(name) !== index) {
            throw refused(field, `Kinds[${index}] is there already`);
        }

        if (!known.some((kind) => wantsKind([name], kind.name))) {
            const hint = name.endsWith('*') && isNoticeKind(name) ? 'kinds that tell about exporters are named in full, not with *' : '';
            const names = `there are ${known.map((kind) => kind.name).join(', ')}`;
            throw refused(field, `Kinds[${index}] fits no event kind: ${hint || names}`);
        }
    }

    return kinds as readonly string[];
}

/** Says of an event whether it is wanted; never throws. */
export type CompiledSubscription = (event: CandidateEvent) => boolean;

/** @param subscription As {@link checkSubscription} has given it. */
export function compileSubscription({ kinds, filter }: Subscription): CompiledSubscription {
    const wanted: CompiledFilter | null = filter && compileFilter(filter);
    return (event) => wantsKind(kinds, event.kind) && (wanted === null || wanted(event.body));
}

/** Whether a stored subscription can be asked at all. Somebody may have written into its row past all checks. */
export function isUsable({ kinds, filter }: Subscription): boolean {
    try {
        wantsKind(kinds, '');
        filter && compileFilter(filter)({});
        return true;
    } catch {
        return false;
    }
}

/** Whether a subscription lets an event pass, and if not, why. */
export interface SubscriptionVerdict {
    readonly wanted: boolean;
    /** False when the kind is not among those that are wanted; the filter is not asked then. */
    readonly kindWanted: boolean;
    /** The conditions of the filter because of which it is not wanted. */
    readonly failed: readonly FailedCondition[];
}

/** What a subscription says of an event, with its reasons. */
export function explainSubscription({ kinds, filter }: Subscription, event: CandidateEvent): SubscriptionVerdict {
    const kindWanted = wantsKind(kinds, event.kind);
    const failed = kindWanted && filter !== null ? failedConditions(filter, event.body) : [];
    return { wanted: kindWanted && failed.length === 0, kindWanted, failed };
}

function refused(field: string, message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}
