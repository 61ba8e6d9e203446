import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAlive, ownBoot, ownIdentity, type ProcessIdentity } from '../../process-identity.ts';
import type { DeliveryStore } from '../deliveries/delivery-store.ts';
import type { Session } from './worker-session.ts';

/** What stands for the process of a session, in place of its own text, once a store knows by itself that the process has ended. */
export const ENDED_PROCESS = 'ended';

/** A session, as far as it tells whose it is. */
type Written = Pick<Session, 'id' | 'process'>;

/**
 * The process of a session, as it is written there for others. It may have a name, which no two that run may have: where they do, the later one has it.
 * That one ends the session of the earlier one. If the earlier one lives, its next heartbeat begins its session again, so that what it has begun since
 * stays its own; and then it finds that it was replaced.
 */
export interface SessionProcess {
    /** Versions that know of no names read the rest. */
    text(): string;
    /** Takes the name, and ends the sessions of those that have it and of those that are known to have ended. @returns How many it has ended. */
    endOthers(): Promise<number>;
    /** Whether another process has taken the name since. Says so once. */
    isReplaced(): Promise<boolean>;
}

/** The process of the session with this id. @param name Null for none. */
export function sessionProcess(
    name: string | null,
    { id, deliveries }: { readonly id: string; readonly deliveries: SessionStore },
): SessionProcess {
    const identity = { ...ownIdentity(), machine: ownMachine() };
    /** When it took its name, in the store's time, in milliseconds since the epoch. Null before, and once it was replaced. */
    let since: number | null = null;

    /** When another session took the name; null where it has another one, or none. */
    function takenBy({ id: other, process }: Written): number | null {
        const identity = identityIn(process);
        return name !== null && identity.name === name && other !== id ? identity.since : null;
    }

    /** Of two that have taken it at the same time, the one with the greater id has it: both know which. */
    function isLater(other: Written, own: number): boolean {
        const taken = takenBy(other);
        return taken !== null && (taken > own || (taken === own && other.id > id));
    }

    return {
        text: () => JSON.stringify({ ...identity, ...(since !== null && { name, since }) }),

        async endOthers() {
            const known = await deliveries.sessions({ silent: true });
            if (name !== null) {
                const now = (await deliveries.now()).getTime();
                // The store's clock may have been set back since another one took it.
                since = Math.max(now, ...known.map((one) => (takenBy(one) ?? 0) + 1));
            }
            const ended = known.filter((one) => hasEnded(one, identity.machine) || takenBy(one) !== null);
            await deliveries.endSessions(ended.map(({ id }) => id));
            return ended.length;
        },

        async isReplaced() {
            const own = since;
            if (own === null || !(await deliveries.sessions()).some((one) => isLater(one, own)) || since !== own) {
                return false;
            }

            since = null;
            return true;
        },
    };
}

type SessionStore = Pick<DeliveryStore, 'now' | 'sessions' | 'endSessions'>;

/**
 * Unless the store says so, this can be known only of a process of this machine since its start, since ids of processes mean nothing elsewhere. Sessions of
 * others end when they are silent, or when a process begins under the name of theirs.
 */
function hasEnded({ process }: Pick<Session, 'process'>, ownMachine: string): boolean {
    if (process === ENDED_PROCESS) {
        return true;
    }

    const { machine, pid, started } = identityIn(process);
    return machine === ownMachine && !isAlive({ pid, started });
}

/** The identity that is written in the text. Its machine is null where the text cannot be read: another version may have written it otherwise. */
function identityIn(
    process: string,
): ProcessIdentity & { readonly machine: string | null; readonly name: unknown; readonly since: number } {
    try {
        const { pid, started, machine, name, since } = JSON.parse(process);
        return { pid: Number(pid), started: String(started), machine: String(machine), name, since: Number(since) };
    } catch {
        return { pid: 0, started: '', machine: null, name: null, since: 0 };
    }
}

/**
 * Names what process ids are unique within: the machine since it was started, by its boot and its name, and on Linux the PID namespace too, since each
 * container may have one of its own. Neither name nor namespace will do by itself: clones of a machine have the same name, and the first namespace of
 * each is the same.
 */
function ownMachine(): string {
    const machine = `${ownBoot()} ${hostname()}`;
    try {
        return `${machine} ${readlinkSync('/proc/self/ns/pid')}`;
        /* c8 ignore next 3 -- Linux always has it */
    } catch {
        return machine;
    }
}
