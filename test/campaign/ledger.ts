import type { Delivery } from 'scanwire/webhooks';
import { type RecordedFault, STOPPED } from './faults.ts';
import type { Accepted, Answer, Arrival } from './journal.ts';

/** All that a campaign has written down. */
export interface Evidence {
    readonly accepted: readonly Accepted[];
    readonly received: readonly (Arrival | Answer)[];
    /** What the store says at the end. */
    readonly deliveries: readonly Delivery[];
    readonly faults: readonly RecordedFault[];
    /** Names of the exporters by their ids. */
    readonly exporters: ReadonlyMap<string, string>;
    /** The name of the one whose messages come in the order of their keys. */
    readonly ordered: string;
    /** What the bodies of each are, by its name. */
    readonly contentTypes: ReadonlyMap<string, string>;
}

/** A POST, with how it ended. */
export interface Post extends Arrival {
    /** Null while there is no end. */
    readonly answer: Answer | null;
}

/** A message that went out although the receiver had taken it before. */
export interface Duplicate {
    readonly post: Post;
    /** The one before, which the receiver answered with a 2xx. */
    readonly first: Post;
    /** The fault of the process or connection of one of the two; null when there was none. */
    readonly cause: RecordedFault | null;
}

/** An event that an exporter's receiver has never answered with a 2xx. */
export interface Loss {
    readonly eventId: string;
    readonly exporter: string;
    /** Its delivery as the store has it: `pending, last connect_refused`. */
    readonly delivery: string;
}

/** What came of a campaign. */
export interface Verdict {
    /** Events that were accepted. */
    readonly events: number;
    readonly posts: number;
    /** One for each exporter that has not got the event. */
    readonly lost: readonly Loss[];
    /** How often an exporter was given no row of an event, since somebody had stopped it when that was accepted. */
    readonly leftOut: number;
    readonly duplicates: readonly Duplicate[];
    /** From acceptance to the first 2xx, in milliseconds. */
    readonly longestDelay: number;
    /** Messages in flight when a fault happened that may be a cause, in the order of the faults. */
    readonly inFlight: ReadonlyMap<RecordedFault, number>;
    /** What else must not be, and how often. */
    readonly wrong: ReadonlyMap<string, number>;
}

/** An answer is in the store within so many milliseconds, when nothing fails. */
const RECORDED_WITHIN = 3_000;

/** A process that goes on after it stood still sends what it had claimed within so many milliseconds. */
const SENT_WITHIN = 5_000;

/** Judges a campaign. */
export function verdict({ accepted, received, deliveries, faults, exporters, ordered, contentTypes }: Evidence): Verdict {
    const posts = postsOf(received);
    const messages = grouped(posts, keyOf);
    const rows = new Map(deliveries.map((row) => [`${row.eventId} ${exporters.get(row.exporterId)}`, row]));
    const events = new Set([...accepted.map(({ eventId }) => eventId), ...deliveries.map(({ eventId }) => eventId)]);
    const wrong = new Counter();

    const stopped = faults.filter(({ kind }) => kind === STOPPED);
    const spans = acceptanceSpans(accepted, deliveries);
    const lost: Loss[] = [];
    let leftOut = 0;
    for (const eventId of events) {
        for (const exporter of exporters.values()) {
            const row = rows.get(`${eventId} ${exporter}`);
            const tries = messages.get(`${eventId} ${exporter}`) ?? [];
            const span = spans.get(eventId) as Span;
            if (row === undefined && tries.length === 0 && stopped.some((fault) => fault.target === exporter && overlaps(fault, span))) {
                leftOut += 1;
            } else if (!tries.some(isTaken)) {
                lost.push({ eventId, exporter, delivery: described(row) });
            } else if (row?.state !== 'delivered') {
                wrong.add(`A message that was answered 2xx is ${row?.state ?? 'missing'} in the store`);
            }
        }
    }

    for (const post of posts) {
        if (!events.has(post.messageId)) {
            wrong.add('An event arrived that was never committed');
        }
        if (post.publication === 'rolled back') {
            wrong.add('An event arrived whose transaction was rolled back');
        }
        if (post.contentType !== contentTypes.get(post.exporter)) {
            wrong.add('A message came in another format than that of its exporter');
        }
        if (post.refusal !== null) {
            wrong.add(`A receiver refuses a message: ${post.refusal}`);
        }
    }
    addDifferences(messages, wrong);
    for (const alike of grouped(accepted, ({ orderKey = '' }) => orderKey).values()) {
        addOvertaking(alike, (eventId) => messages.get(`${eventId} ${ordered}`) ?? [], wrong);
    }

    return {
        events: events.size,
        posts: posts.length,
        lost,
        leftOut,
        duplicates: [...messages.values()].flatMap((tries) => duplicatesOf(tries, faults)),
        longestDelay: longestDelay(accepted, messages, [...exporters.values()]),
        inFlight: new Map(faults.filter(({ excuses }) => excuses !== null).map((fault) => [fault, inFlightAt(fault, posts)])),
        wrong: wrong.counts,
    };
}

/** Of an event that no host has noted as accepted, since it died, or its connection did: so near to the time of its rows it was. */
const ACCEPTED_WITHIN = 1_000;

/** Between which times each event was accepted. */
function acceptanceSpans(accepted: readonly Accepted[], deliveries: readonly Delivery[]): ReadonlyMap<string, Span> {
    return new Map([
        ...deliveries.map(({ eventId, createdAt }): [string, Span] => {
            const at = createdAt.getTime();
            return [eventId, { from: at - ACCEPTED_WITHIN, until: at + ACCEPTED_WITHIN }];
        }),
        ...accepted.map(({ eventId, from, at }): [string, Span] => [eventId, { from, until: at }]),
    ]);
}

function overlaps(one: Span, other: Span): boolean {
    return one.from <= other.until && one.until >= other.from;
}

/** What of it must not be, in words: no message is lost, and none comes twice but by a fault, which has as many to answer for as were in flight. */
export function failuresOf({
    lost,
    duplicates,
    wrong,
    inFlight,
}: Pick<Verdict, 'lost' | 'duplicates' | 'wrong' | 'inFlight'>): readonly string[] {
    const uncaused = duplicates.filter(({ cause }) => cause === null).length;
    const excessive = [...inFlight].filter(([fault, count]) => duplicates.filter(({ cause }) => cause === fault).length > count);
    return [
        ...[...grouped(lost, ({ exporter, delivery }) => `Lost: ${exporter}, ${delivery}`)].map(
            ([what, ofKind]) => `${what}: ${ofKind.length} deliveries`,
        ),
        ...(uncaused > 0 ? [`Duplicates without a cause: ${uncaused}`] : []),
        ...excessive.map(([{ kind, target }]) => `More duplicates than were in flight: ${kind}, ${target}`),
        ...[...wrong].map(([what, count]) => `${what}: ${count} times`),
    ];
}

/** By what `key` says of each, in the order of the first. */
export function grouped<T>(list: readonly T[], key: (value: T) => string): Map<string, T[]> {
    const groups = new Map<string, T[]>();
    for (const value of list) {
        const group = groups.get(key(value));
        if (group === undefined) {
            groups.set(key(value), [value]);
        } else {
            group.push(value);
        }
    }
    return groups;
}

class Counter {
    readonly counts = new Map<string, number>();

    add(what: string): void {
        this.counts.set(what, (this.counts.get(what) ?? 0) + 1);
    }
}

function described(row: Delivery | undefined): string {
    return row === undefined ? 'without a row' : `${row.state}, ${row.lastCode === null ? 'never tried' : `last ${row.lastCode}`}`;
}

/** In the order of their arrival, without the tests of exporters. */
function postsOf(received: readonly (Arrival | Answer)[]): Post[] {
    const answers = new Map(received.flatMap((line) => (line.is === 'answer' ? [[line.post, line]] : [])));
    return received.flatMap((line) =>
        line.is === 'arrival' && line.kind !== 'test' ? [{ ...line, answer: answers.get(line.post) ?? null }] : [],
    );
}

function keyOf({ messageId, exporter }: Post): string {
    return `${messageId} ${exporter}`;
}

/** The receiver has taken it, and the sender could know. */
function isTaken({ answer }: Post): boolean {
    return answer?.status === 204 && answer.written;
}

function addDifferences(messages: ReadonlyMap<string, readonly Post[]>, wrong: Counter): void {
    const bodies = new Map<string, string>();
    for (const [first, ...others] of messages.values()) {
        if (first === undefined) {
            continue;
        }
        const made = `${first.messageId} ${first.contentType}`;
        if ((bodies.get(made) ?? first.bodyHash) !== first.bodyHash) {
            wrong.add('Two exporters of one format got different bodies of an event');
        }
        bodies.set(made, first.bodyHash);
        if (others.some(({ bodyHash, signature }) => bodyHash !== first.bodyHash || signature !== first.signature)) {
            wrong.add('Two tries of a message differ in body or signature');
        }
    }
}

/**
 * Of events with the same order key, one that was published after another had been accepted comes after that was taken. What is lost is
 * told as such.
 */
function addOvertaking(alike: readonly Accepted[], triesOf: (eventId: string) => readonly Post[], wrong: Counter): void {
    const byAcceptance = alike.filter(({ orderKey }) => orderKey !== undefined).toSorted((one, other) => one.at - other.at);
    const byBeginning = byAcceptance.toSorted((one, other) => one.from - other.from);
    let before = 0;
    let allTakenAt = Number.NEGATIVE_INFINITY;
    for (const { eventId, from } of byBeginning) {
        for (let one = byAcceptance[before]; one !== undefined && one.at < from; one = byAcceptance[before]) {
            // The first try that a fault has parted from its answer may be answered behind the second.
            const takenAt = triesOf(one.eventId).flatMap((post) => (isTaken(post) ? [post.answer?.at ?? Number.POSITIVE_INFINITY] : []));
            allTakenAt = Math.max(allTakenAt, takenAt.length === 0 ? allTakenAt : Math.min(...takenAt));
            before += 1;
        }
        if ((triesOf(eventId)[0]?.at ?? Number.POSITIVE_INFINITY) < allTakenAt) {
            wrong.add('A message came before another of its order key was taken');
        }
    }
}

function duplicatesOf(tries: readonly Post[], faults: readonly RecordedFault[]): Duplicate[] {
    return tries.flatMap((post, index) => {
        const first = tries.slice(0, index).findLast(isTaken);
        return first === undefined ? [] : [{ post, first, cause: causeOf(first, post, faults) }];
    });
}

/**
 * What may have kept the outcome of the first from the store, or its sender from knowing that its claim had run out. Only faults of
 * the very process that sent it count, and of the database that all of them share.
 */
function causeOf(first: Post, post: Post, faults: readonly RecordedFault[]): RecordedFault | null {
    const stoodStill = { from: post.at - SENT_WITHIN, until: post.at };
    return (
        faults.find((fault) => hits(fault, first, inFlight(first))) ??
        faults.find((fault) => fault.kind === 'process stands still' && hits(fault, post, stoodStill)) ??
        null
    );
}

interface Span {
    readonly from: number;
    readonly until: number;
}

/** From its arrival until its outcome is in the store. */
function inFlight({ at, answer }: Post): Span {
    return { from: at, until: (answer?.at ?? at) + RECORDED_WITHIN };
}

function hits({ from, until, excuses, address }: RecordedFault, post: Post, span: Span): boolean {
    return excuses !== null && (address === null || address === post.to) && from <= span.until && until + excuses >= span.from;
}

function inFlightAt(fault: RecordedFault, posts: readonly Post[]): number {
    return posts.filter((post) => hits(fault, post, inFlight(post))).length;
}

function longestDelay(accepted: readonly Accepted[], messages: ReadonlyMap<string, readonly Post[]>, exporters: readonly string[]): number {
    let longest = 0;
    for (const { eventId, at } of accepted) {
        for (const exporter of exporters) {
            longest = Math.max(longest, (messages.get(`${eventId} ${exporter}`)?.find(isTaken)?.answer?.at ?? at) - at);
        }
    }
    return longest;
}
