import { readyBatches } from '../../batched.ts';
import { ScanwireError } from '../../errors.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import { ACCEPTANCES_AT_ONCE } from '../dispatching/acceptance-limit.ts';
import type { UnroutedEvent } from './event-routing.ts';
import { ownedKeyOf } from './keyed-acceptance.ts';

/*
 * Events with order keys share statements, but an open transaction may have one of the keys, for as long as the application likes. So that this
 * keeps no other key waiting, and takes few connections of a pool that is the application's:
 *
 * - A statement for many keys waits for none of them. The store leaves out what is locked and takes the rest, so that a key that nobody has, which
 *   is the common case, costs nothing more, and one that somebody has costs others nothing.
 * - What was left out goes in a statement of its own key, which waits in the database's queue for the lock. So who has the key for a moment, as another
 *   process that publishes, is waited for no longer than that, and in turn with others. It waits for a short while and then once more:
 *   however many keys are locked, they share few connections, and one that is free again is not kept waiting by those that are not.
 * - Of one key there is one statement at a time. So its events keep the order of their calls, and take one connection.
 * - What has waited for too long is refused when its time is over, also where so many keys are locked that its turn does not come until then.
 *
 * An event without an order key whose idempotency key may be locked waits in the same way, in the line of that key: it has left its list since one of
 * the list's keys is locked. Most of the others are free. So those that have not been looked at have one of the two connections before all others.
 * Events that are stored together or not at all wait so too, in a line of their own, since any of their keys may be locked.
 */

/** How events are accepted. */
export interface AcceptanceSteps {
    /** Stores events in one statement, as far as {@link AcceptOptions.lockTimeout} lets it. */
    accept(events: readonly UnroutedEvent[], lockTimeout: number): Promise<readonly Acceptance[]>;
    /** Maximum number of events in a statement. */
    readonly limit: number;
    readonly monotonic: () => number;
    readonly sleep: (milliseconds: number) => Promise<void>;
}

/** How many statements wait for locked keys at the same time. */
const WAITING_AT_ONCE = 2;

/** Milliseconds for which one of them waits; and while others wait for its place. */
const LOCK_TIMEOUT = { alone: 500, crowded: 50 } as const;

/** Milliseconds after which an event is refused whose key is locked: as many as a statement is waited for. */
const PATIENCE = 25_000;

/** Milliseconds between two looks at what has waited for so long. */
const OVERDUE_EVERY = 200;

/** The events of one call. */
interface WaitingCall {
    readonly events: readonly UnroutedEvent[];
    readonly since: number;
    resolve(acceptances: readonly Acceptance[]): void;
    reject(error: unknown): void;
}

/** Calls for one key, in their order. */
interface Line {
    readonly calls: WaitingCall[];
    /** Whether what it waits for may be locked already: it is found out behind others. */
    readonly isDoubtful: boolean;
    /** How many of them, from the first, the last statement was given. */
    turn: number;
    /** How many of them, from the first, go one at a time: together they were refused. */
    singly: number;
    isLocked: boolean;
    /** Whether a statement has its first events, and may store them. */
    isUnderWay: boolean;
}

type Turn = readonly Acceptance[];

/** Accepts what may have to wait for a key. */
export interface OrderedAcceptance {
    /** For an event with an order key, or with an idempotency key that may be locked. */
    one(event: UnroutedEvent): Promise<Acceptance>;
    /** For events of which a key may be locked: all of them or none. */
    all(events: readonly UnroutedEvent[]): Promise<readonly Acceptance[]>;
}

/** Accepts events with order keys, and those whose idempotency keys may be locked, each by a call of its own, or several by one call together. */
export function orderedAcceptance({ accept, limit, monotonic, sleep }: AcceptanceSteps): OrderedAcceptance {
    const lines = new Map<string | symbol, Line>();
    const refuseInTime = overdueRefusals(lines, { monotonic, sleep });
    /** How many lines wait for their key, or for a place to do so. */
    let locked = 0;
    const together = readyBatches<Line, Turn>((some) => acceptTurns(some, 0), next, { runs: ACCEPTANCES_AT_ONCE });
    const behindLock = readyBatches<Line, Turn>(acceptLocked, nextBehindLock, { runs: WAITING_AT_ONCE });

    /** The lines whose turns fit into one statement. */
    function next<Call extends { readonly item: Line }>(calls: readonly Call[]): readonly Call[] {
        let events = 0;
        const end = calls.findIndex(({ item }) => {
            events += turnOf(item, limit);
            return events > limit;
        });
        return end === -1 ? calls : calls.slice(0, end);
    }

    async function acceptTurns(some: readonly Line[], lockTimeout: number): Promise<readonly Turn[]> {
        const turns = some.map((line) => {
            line.turn = turnOf(line, limit);
            line.isUnderWay = true;
            return line.calls.slice(0, line.turn).flatMap(({ events }) => events);
        });
        const accepted = [...(await accept(turns.flat(), lockTimeout))];
        return turns.map((turn) => accepted.splice(0, turn.length));
    }

    async function acceptLocked(some: readonly Line[]): Promise<readonly Turn[]> {
        const [line] = some as readonly [Line];
        refuseOverdue(line, monotonic());
        if (line.calls.length === 0) {
            line.turn = 0;
            return [[]];
        }
        return await acceptTurns(some, locked > WAITING_AT_ONCE ? LOCK_TIMEOUT.crowded : LOCK_TIMEOUT.alone);
    }

    async function acceptTurn(line: Line): Promise<Turn> {
        if (line.isLocked || line.isDoubtful) {
            locked += 1;
            void refuseInTime();
            return await behindLock.add(line).finally(() => {
                locked -= 1;
            });
        }
        // A refused key must not make other events of the statement fail.
        const isAlone = line.singly > 0 || isRefusable(line.calls[0]);
        return isAlone ? ((await acceptTurns([line], 0))[0] as Turn) : await together.add(line);
    }

    async function serve(key: string | symbol, line: Line): Promise<void> {
        while (line.calls.length > 0) {
            try {
                settle(line, await acceptTurn(line), monotonic());
            } catch (error) {
                fail(line, error);
            }
            line.isUnderWay = false;
        }
        lines.delete(key);
    }

    function add(key: string | symbol, events: readonly UnroutedEvent[], isDoubtful: boolean): Promise<readonly Acceptance[]> {
        return new Promise((resolve, reject) => {
            const call: WaitingCall = { events, since: monotonic(), resolve, reject };
            const line = lines.get(key);
            if (line !== undefined) {
                line.calls.push(call);
                return;
            }
            const first: Line = { calls: [call], isDoubtful, turn: 0, singly: 0, isLocked: false, isUnderWay: false };
            lines.set(key, first);
            void serve(key, first);
        });
    }

    return {
        async one(event) {
            const isDoubtful = event.orderKey === undefined;
            const key = isDoubtful ? `idempotency ${ownedKeyOf(event)}` : `order ${event.orderKey}`;
            const [acceptance] = await add(key, [event], isDoubtful);
            return acceptance as Acceptance;
        },

        all: (events) => add(Symbol('together'), events, true),
    };
}

/** One line, in turn; but one that has not been found to be locked goes before the others, unless there is another such one under way. */
function nextBehindLock<Call extends { readonly item: Line }>(calls: readonly Call[], underWay: Iterable<Call>): readonly Call[] {
    const isNewUnderWay = [...underWay].some(({ item }) => !item.isLocked);
    const preferred = calls.find(({ item }) => item.isLocked === isNewUnderWay);
    return preferred === undefined ? calls.slice(0, 1) : [preferred];
}

/** How many of the calls go together, at most `limit`: one that is told to, or that has a key which may be refused, goes alone. */
function turnOf({ calls, singly }: Line, limit: number): number {
    const first = calls.slice(0, limit);
    const end = first.findIndex(isRefusable);
    return singly > 0 || end === 0 ? 1 : end === -1 ? first.length : end;
}

function isRefusable(call: WaitingCall | undefined): boolean {
    return call?.events.some(({ idempotency }) => idempotency !== undefined) === true;
}

function takeTurn(line: Line): readonly WaitingCall[] {
    line.singly = Math.max(0, line.singly - line.turn);
    return line.calls.splice(0, line.turn);
}

function settle(line: Line, accepted: Turn, now: number): void {
    line.isLocked = accepted[0]?.locked === true;
    if (line.isLocked) {
        refuseOverdue(line, now);
        return;
    }
    const left = [...accepted];
    for (const { events, resolve } of takeTurn(line)) {
        resolve(left.splice(0, events.length));
    }
}

/** Refuses in time what is overdue in any line, for as long as one is locked. What a statement has is refused after it, unless it is stored by then. */
function overdueRefusals(
    lines: ReadonlyMap<string | symbol, Line>,
    { monotonic, sleep }: Pick<AcceptanceSteps, 'monotonic' | 'sleep'>,
): () => Promise<void> {
    let isRefusing = false;
    return async () => {
        if (isRefusing) {
            return;
        }
        isRefusing = true;
        for (let locked = lockedOf(lines); locked.length > 0; locked = lockedOf(lines)) {
            await sleep(OVERDUE_EVERY);
            for (const line of lockedOf(lines)) {
                if (!line.isUnderWay) {
                    refuseOverdue(line, monotonic());
                }
            }
        }
        isRefusing = false;
    };
}

function lockedOf(lines: ReadonlyMap<string | symbol, Line>): readonly Line[] {
    return [...lines.values()].filter(({ isLocked }) => isLocked);
}

function refuseOverdue({ calls }: Line, now: number): void {
    const overdue = now - PATIENCE;
    const end = calls.findIndex(({ since }) => since > overdue);
    for (const { events, reject } of calls.splice(0, end === -1 ? calls.length : end)) {
        reject(new ScanwireError('UNAVAILABLE', overdueText(events)));
    }
}

function overdueText([first, ...others]: readonly UnroutedEvent[]): string {
    const [what, key] =
        others.length > 0
            ? ['events', 'one of their keys']
            : ['event', `its ${first?.orderKey === undefined ? 'idempotency' : 'order'} key`];
    return `The ${what} could not be stored within ${PATIENCE} ms: an open transaction has ${key}, or something else that ${others.length > 0 ? 'they need' : 'it needs'}`;
}

function fail(line: Line, error: unknown): void {
    if (line.turn > 1 && !(error instanceof ScanwireError && error.code === 'UNAVAILABLE')) {
        line.singly = line.turn;
        return;
    }
    for (const { reject } of takeTurn(line)) {
        reject(error);
    }
}
