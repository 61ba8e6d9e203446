import { batched, readyBatches } from '../../batched.ts';
import { ScanwireError } from '../../errors.ts';
import type { Acceptance } from '../deliveries/delivery-store.ts';
import { ACCEPTANCES_AT_ONCE } from '../dispatching/acceptance-limit.ts';
import type { UnroutedEvent } from './event-routing.ts';

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
 */

/** How events are accepted. */
export interface AcceptanceSteps {
    /** Stores events in one statement, as far as {@link AcceptOptions.lockTimeout} lets it. */
    accept(events: readonly UnroutedEvent[], lockTimeout: number): Promise<readonly Acceptance[]>;
    /** Maximum number of events in a statement. */
    readonly limit: number;
    readonly monotonic: () => number;
}

/** How many statements wait for locked keys at the same time. */
const WAITING_AT_ONCE = 2;

/** Milliseconds for which one of them waits; and while others wait for its place. */
const LOCK_TIMEOUT = { alone: 500, crowded: 50 } as const;

/** Milliseconds after which an event is refused whose key is locked: as many as a statement is waited for. */
const PATIENCE = 25_000;

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
}

type Turn = readonly Acceptance[];

/** Accepts events with order keys, each by a call of its own. */
export function orderedAcceptance({ accept, limit, monotonic }: AcceptanceSteps): (event: UnroutedEvent) => Promise<Acceptance> {
    const lines = new Map<string, Line>();
    /** How many lines wait for their key, or for a place to do so. */
    let locked = 0;
    const together = readyBatches<Line, Turn>((some) => acceptTurns(some, 0), next, { runs: ACCEPTANCES_AT_ONCE });
    const behindLock = batched<Line, Turn>(
        (some) => acceptTurns(some, locked > WAITING_AT_ONCE ? LOCK_TIMEOUT.crowded : LOCK_TIMEOUT.alone),
        1,
        WAITING_AT_ONCE,
    );

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
            return line.events.slice(0, line.turn).map(({ event }) => event);
        });
        const accepted = [...(await accept(turns.flat(), lockTimeout))];
        return turns.map((turn) => accepted.splice(0, turn.length));
    }

    async function acceptTurn(line: Line): Promise<Turn> {
        if (line.isLocked) {
            locked += 1;
            return await behindLock(line).finally(() => {
                locked -= 1;
            });
        }
        // A refused key must not make other events of the statement fail.
        const isAlone = line.singly > 0 || line.events[0]?.event.idempotency !== undefined;
        return isAlone ? ((await acceptTurns([line], 0))[0] as Turn) : await together.add(line);
    }

    async function serve(key: string, line: Line): Promise<void> {
        while (line.events.length > 0) {
            try {
                settle(line, await acceptTurn(line), monotonic());
            } catch (error) {
                fail(line, error);
            }
        }
        lines.delete(key);
    }

    return (event) =>
        new Promise((resolve, reject) => {
            const key = event.orderKey as string;
            const waiting: WaitingEvent = { event, since: monotonic(), resolve, reject };
            const line = lines.get(key);
            if (line !== undefined) {
                line.events.push(waiting);
                return;
            }
            const first: Line = { events: [waiting], turn: 0, singly: 0, isLocked: false };
            lines.set(key, first);
            void serve(key, first);
        });
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

function refuseOverdue({ events }: Line, now: number): void {
    const overdue = now - PATIENCE;
    const end = events.findIndex(({ since }) => since > overdue);
    for (const { reject } of events.splice(0, end === -1 ? events.length : end)) {
        reject(
            new ScanwireError('UNAVAILABLE', `The order key was not free within ${PATIENCE} ms: an open transaction has published with it`),
        );
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
