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

interface WaitingEvent {
    readonly event: UnroutedEvent;
    readonly since: number;
    resolve(acceptance: Acceptance): void;
    reject(error: unknown): void;
}

/** Events of one key, in the order of their calls. */
interface Line {
    readonly events: WaitingEvent[];
    /** How many of them, from the first, the last statement was given. */
    turn: number;
    /** How many of them, from the first, go one at a time: together they were refused. */
    singly: number;
    isLocked: boolean;
    /** Whether a statement has its first events, and may store them. */
    isUnderWay: boolean;
}

type Turn = readonly Acceptance[];

/** Accepts events with order keys, and those whose idempotency keys may be locked, each by a call of its own. */
export function orderedAcceptance({ accept, limit, monotonic, sleep }: AcceptanceSteps): (event: UnroutedEvent) => Promise<Acceptance> {
    const lines = new Map<string, Line>();
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
            return line.events.slice(0, line.turn).map(({ event }) => event);
        });
        const accepted = [...(await accept(turns.flat(), lockTimeout))];
        return turns.map((turn) => accepted.splice(0, turn.length));
    }

    async function acceptLocked(some: readonly Line[]): Promise<readonly Turn[]> {
        const [line] = some as readonly [Line];
        refuseOverdue(line, monotonic());
        if (line.events.length === 0) {
            line.turn = 0;
            return [[]];
        }
        return await acceptTurns(some, locked > WAITING_AT_ONCE ? LOCK_TIMEOUT.crowded : LOCK_TIMEOUT.alone);
    }

    async function acceptTurn(line: Line): Promise<Turn> {
        const [first] = line.events;
        if (line.isLocked || first?.event.orderKey === undefined) {
            locked += 1;
            void refuseInTime();
            return await behindLock.add(line).finally(() => {
                locked -= 1;
            });
        }
        // A refused key must not make other events of the statement fail.
        const isAlone = line.singly > 0 || first.event.idempotency !== undefined;
        return isAlone ? ((await acceptTurns([line], 0))[0] as Turn) : await together.add(line);
    }

    async function serve(key: string, line: Line): Promise<void> {
        while (line.events.length > 0) {
            try {
                settle(line, await acceptTurn(line), monotonic());
            } catch (error) {
                fail(line, error);
            }
            line.isUnderWay = false;
        }
        lines.delete(key);
    }

    return (event) =>
        new Promise((resolve, reject) => {
            const key = event.orderKey === undefined ? `idempotency ${ownedKeyOf(event)}` : `order ${event.orderKey}`;
            const waiting: WaitingEvent = { event, since: monotonic(), resolve, reject };
            const line = lines.get(key);
            if (line !== undefined) {
                line.events.push(waiting);
                return;
            }
            const first: Line = { events: [waiting], turn: 0, singly: 0, isLocked: false, isUnderWay: false };
            lines.set(key, first);
            void serve(key, first);
        });
}

/** One line, in turn; but one that has not been found to be locked goes before the others, unless there is another such one under way. */
function nextBehindLock<Call extends { readonly item: Line }>(calls: readonly Call[], underWay: Iterable<Call>): readonly Call[] {
    const isNewUnderWay = [...underWay].some(({ item }) => !item.isLocked);
    const preferred = calls.find(({ item }) => item.isLocked === isNewUnderWay);
    return preferred === undefined ? calls.slice(0, 1) : [preferred];
}

/** How many of the events go together, at most `limit`: one that is told to, or that has a key which may be refused, goes alone. */
function turnOf({ events, singly }: Line, limit: number): number {
    const first = events.slice(0, limit);
    const end = first.findIndex(({ event }) => event.idempotency !== undefined);
    return singly > 0 || end === 0 ? 1 : end === -1 ? first.length : end;
}

function takeTurn(line: Line): readonly WaitingEvent[] {
    line.singly = Math.max(0, line.singly - line.turn);
    return line.events.splice(0, line.turn);
}

function settle(line: Line, accepted: Turn, now: number): void {
    line.isLocked = accepted[0]?.locked === true;
    if (line.isLocked) {
        refuseOverdue(line, now);
        return;
    }
    for (const [index, { resolve }] of takeTurn(line).entries()) {
        resolve(accepted[index] as Acceptance);
    }
}

/** Refuses in time what is overdue in any line, for as long as one is locked. What a statement has is refused after it, unless it is stored by then. */
function overdueRefusals(
    lines: ReadonlyMap<string, Line>,
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

function lockedOf(lines: ReadonlyMap<string, Line>): readonly Line[] {
    return [...lines.values()].filter(({ isLocked }) => isLocked);
}

function refuseOverdue({ events }: Line, now: number): void {
    const overdue = now - PATIENCE;
    const end = events.findIndex(({ since }) => since > overdue);
    for (const { event, reject } of events.splice(0, end === -1 ? events.length : end)) {
        const kind = event.orderKey === undefined ? 'idempotency' : 'order';
        const reason = `an open transaction has its ${kind} key, or something else that it needs`;
        reject(new ScanwireError('UNAVAILABLE', `The event could not be stored within ${PATIENCE} ms: ${reason}`));
    }
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
