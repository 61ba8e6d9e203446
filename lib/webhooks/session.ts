import { readlinkSync } from 'node:fs';
import { hostname } from 'node:os';
import { isAlive, ownIdentity, type ProcessIdentity } from '../process-identity.ts';
import type { WebhooksContext } from './options.ts';
import type { Session } from './store.ts';

/** Under which a process claims: whoever holds claims says all the time that it is alive. */
export interface ClaimingSession {
    readonly id: string;
    /** Ends the sessions of processes of this machine that have ended, then begins. */
    begin(): Promise<void>;
    /** Says how many attempts for a collector this process can make at once. */
    offer(collector: string, slots: number): Promise<void>;
    /** Says that it makes no more attempts: what it has claimed stays its own. */
    withdraw(): void;
    /** Ends it, so that what was claimed under it and not recorded is free at once. */
    end(): Promise<void>;
}

/** Milliseconds without a sign of life after which the claims of a process count as lost. */
const ALIVE_FOR = 7_500;
const SIGN_EVERY = 2_000;

/** A session of this process that has not begun. */
export function claimingSession({
    deliveries,
    newId,
    onError,
    member,
}: Pick<WebhooksContext, 'deliveries' | 'newId' | 'onError' | 'member'>): ClaimingSession {
    const id = newId();
    const process = JSON.stringify({ ...ownIdentity(), machine: ownMachine() });
    const slots: Record<string, number> = {};
    let timer: NodeJS.Timeout | undefined;
    let sign: Promise<void> = Promise.resolve();

    async function keepAlive(): Promise<void> {
        await deliveries.keepAlive({ id, process, slots, generation: member.generation() }, ALIVE_FOR);
    }

    function signOfLife(): void {
        sign = keepAlive().catch(onError);
    }

    return {
        id,

        async begin() {
            const ended = (await deliveries.sessions()).filter(hasEnded).map(({ id }) => id);
            await deliveries.endSessions(ended);
            await keepAlive();
            timer = setInterval(signOfLife, SIGN_EVERY);
            timer.unref();
        },

        async offer(collector, more) {
            slots[collector] = (slots[collector] ?? 0) + more;
            await keepAlive();
        },

        withdraw() {
            for (const collector of Object.keys(slots)) {
                delete slots[collector];
            }
            signOfLife();
        },

        async end() {
            clearInterval(timer);
            await sign;
            await deliveries.endSessions([id]).catch(onError);
        },
    };
}

/** Only of a process of this machine, whose ids mean the same here, can that be told; others end when they are silent. */
function hasEnded({ process }: Pick<Session, 'process'>): boolean {
    const { machine, ...identity } = identityIn(process);
    return machine === ownMachine() && !isAlive(identity);
}

/** What another version has written need not be read. */
function identityIn(process: string): ProcessIdentity & { readonly machine: string | null } {
    try {
        const { pid, started, machine } = JSON.parse(process);
        return { pid: Number(pid), started: String(started), machine: String(machine) };
    } catch {
        return { pid: 0, started: '', machine: null };
    }
}

/** Where ids of processes mean the same: the name of the machine and, on Linux, what keeps the processes of containers apart. */
function ownMachine(): string {
    try {
        return `${hostname()} ${readlinkSync('/proc/self/ns/pid')}`;
        /* c8 ignore next 3 -- Linux always has it */
    } catch {
        return hostname();
    }
}
