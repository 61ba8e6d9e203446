import { setTimeout as sleep } from 'node:timers/promises';
import type { Webhooks } from 'scanwire/webhooks';
import { seeded } from '../support/seeded.ts';
import { type Deployment, EXPORTERS, ORDERED } from './deployment.ts';
import { trueTime } from './journal.ts';
import type { Member } from './member.ts';
import { insisting, restored } from './operators.ts';
import type { ReceiverBehaviour } from './receiver.ts';

type Exporters = Webhooks['exporters'];

interface Process {
    readonly on: 'process';
    run(member: Member, milliseconds: number, signal: AbortSignal): Promise<void>;
}

interface Server {
    readonly on: 'redis' | 'postgres';
    run(deployment: Deployment, milliseconds: number, signal: AbortSignal): Promise<void>;
}

interface Receiver {
    readonly on: 'receiver';
    readonly behaviour: ReceiverBehaviour;
}

interface Operated {
    readonly on: 'exporter';
    run(exporters: Exporters, id: string, milliseconds: number, signal: AbortSignal): Promise<void>;
}

/** A way in which something fails. Times in seconds. */
type Kind = (Process | Server | Receiver | Operated) & {
    readonly seconds: readonly [shortest: number, longest: number];
    /** How long after it a deployment may need until nothing is left to do. */
    readonly recovery: number;
    /** For how long after it an attempt may still suffer from it; absent where no message may go out twice because of it. */
    readonly excuses?: number;
    /** To which it can happen; to all of its sort when absent. */
    readonly targets?: readonly string[];
};

/** A connection that is silent is noticed within so many seconds. */
const NOTICED = 30;

/** Bytes of a file of PostgreSQL's write-ahead log, which goes on then; tables and indexes of deliveries are soon longer. */
const WAL_SEGMENT = 2 ** 20;

const HOUR = 3_600_000;

const onProcess = (
    run: Process['run'],
    seconds: Kind['seconds'],
    more: { readonly recovery: number; readonly excuses?: number },
): Kind => ({ on: 'process', run, seconds, ...more });

const receiver = (behaviour: ReceiverBehaviour): Kind => ({ on: 'receiver', behaviour, seconds: [2, 8], recovery: 30 });

/** What `begin` does for so long, or until it is called off, and then what `end` does. */
const lasting =
    <Target>(begin: (target: Target) => unknown, end: (target: Target) => unknown) =>
    async (target: Target, milliseconds: number, signal: AbortSignal): Promise<void> => {
        await begin(target);
        try {
            await sleep(milliseconds, undefined, { signal });
        } finally {
            await end(target);
        }
    };

type Operation = (exporters: Exporters, id: string) => Promise<unknown>;

const operated = (begin: Operation, end: Operation): Kind => ({
    on: 'exporter',
    run: (exporters, id, milliseconds, signal) =>
        lasting(
            () => insisting(() => begin(exporters, id), signal),
            () => insisting(() => end(exporters, id), signal),
        )(null, milliseconds, signal),
    seconds: [2, 10],
    recovery: 25,
});

const setClock = (clockOffset: number): Process['run'] =>
    lasting(
        (member) => member.send({ clockOffset }),
        (member) => member.send({ clockOffset: 0 }),
    );

const restarted = (signal: 'SIGINT' | 'SIGQUIT'): Kind => ({
    on: 'postgres',
    run: lasting(
        ({ postgres }) => postgres.stop(signal),
        ({ postgres }) => postgres.start(),
    ),
    seconds: [0, 5],
    recovery: 25,
    excuses: 5,
});

/** What leaves out the events that are accepted meanwhile. */
export const STOPPED = 'exporter stopped';

/** What ends messages, and stops the exporter until somebody starts it: `restored` then brings back what it has ended and held. */
export const GONE = 'receiver says 410';

/** All that fails in a campaign, and what operators do meanwhile. */
const KINDS: Readonly<Record<string, Kind>> = {
    // What it has sent may be taken a while after its end; the one that takes its place has another address.
    'process killed': onProcess((member, milliseconds) => member.kill(milliseconds), [0.2, 3], { recovery: 25, excuses: 1 }),
    'process stands still': onProcess(
        lasting(
            (member) => member.signal('SIGSTOP'),
            (member) => member.signal('SIGCONT'),
        ),
        [2, 28],
        { recovery: 20, excuses: 2 },
    ),
    'process restarted': onProcess((member, milliseconds) => member.terminate(milliseconds), [0.2, 2], { recovery: 25 }),
    'clock an hour ahead': onProcess(setClock(HOUR), [5, 20], { recovery: 25 }),
    'clock an hour behind': onProcess(setClock(-HOUR), [5, 20], { recovery: 25 }),
    'names not answered': onProcess(
        lasting(
            (member) => member.answerNames(false),
            (member) => member.answerNames(true),
        ),
        [3, 12],
        { recovery: 30 },
    ),
    'connections to PostgreSQL frozen': onProcess(async ({ postgres }) => postgres.silence(), [0, 0], {
        recovery: NOTICED + 15,
        excuses: NOTICED,
    }),
    'connections to PostgreSQL half open': onProcess(async ({ postgres }) => postgres.halve(), [0, 0], {
        recovery: NOTICED + 15,
        excuses: NOTICED,
    }),
    'PostgreSQL out of reach': onProcess(
        lasting(
            ({ postgres }) => postgres.silenceAll(),
            ({ postgres }) => postgres.recover(),
        ),
        [3, 12],
        { recovery: NOTICED + 15, excuses: NOTICED },
    ),
    'connections to Redis frozen': onProcess(async ({ redis }) => redis.silence(), [0, 0], { recovery: NOTICED + 15 }),
    'connections to Redis half open': onProcess(async ({ redis }) => redis.halve(), [0, 0], { recovery: NOTICED + 15 }),
    'Redis out of reach': onProcess(
        lasting(
            ({ redis }) => redis.silenceAll(),
            ({ redis }) => redis.recover(),
        ),
        [3, 12],
        { recovery: NOTICED + 15 },
    ),
    'Redis stopped': {
        on: 'redis',
        run: lasting(
            ({ redis }) => redis.kill(),
            ({ redis }) => redis.start(),
        ),
        seconds: [0.5, 6],
        recovery: 20,
    },
    'Redis emptied': { on: 'redis', run: async ({ redis }) => void (await redis.command('FLUSHALL')), seconds: [0, 0], recovery: 20 },
    'Redis full': {
        on: 'redis',
        run: lasting(
            ({ redis }) => redis.command('CONFIG SET maxmemory 1'),
            ({ redis }) => redis.command('CONFIG SET maxmemory 0'),
        ),
        seconds: [2, 8],
        recovery: 20,
    },
    'Redis failed over': {
        on: 'redis',
        run: lasting(
            ({ redis }) => redis.kill(),
            ({ redis }) => redis.promoteReplica(),
        ),
        seconds: [0.5, 6],
        recovery: 20,
    },
    'Redis handed over': { on: 'redis', run: async ({ redis }) => redis.promoteReplica(), seconds: [0, 0], recovery: 20 },
    'disk of Redis full': {
        on: 'redis',
        run: lasting(
            ({ redis }) => redis.fillDisk(true),
            ({ redis }) => redis.fillDisk(false),
        ),
        seconds: [2, 8],
        recovery: 20,
    },
    'disk of PostgreSQL full': {
        on: 'postgres',
        run: lasting(
            ({ postgres }) => postgres.limitFiles(WAL_SEGMENT),
            ({ postgres }) => postgres.limitFiles(null),
        ),
        seconds: [2, 8],
        recovery: 25,
        excuses: 5,
    },
    'disk of the WAL full': {
        on: 'postgres',
        run: lasting(
            ({ postgres }) => postgres.limitFiles(1),
            // It ends by itself as soon as it has something to write, and cannot start meanwhile.
            async ({ postgres }) => {
                await postgres.stop('SIGQUIT');
                await postgres.start();
            },
        ),
        seconds: [0.5, 5],
        recovery: 25,
        excuses: 5,
    },
    'PostgreSQL restarted, fast': restarted('SIGINT'),
    'PostgreSQL restarted, immediate': restarted('SIGQUIT'),
    'receiver refuses': receiver('refuses'),
    'receiver resets': receiver('resets'),
    'receiver hangs': { ...receiver('hangs'), recovery: 40 },
    // What is brought back comes after others of its order key.
    [GONE]: { ...receiver('says 410'), targets: EXPORTERS.filter((name) => name !== ORDERED) },
    'receiver says 429': receiver('says 429'),
    'receiver says 503': receiver('says 503'),
    'receiver answers after 8 s': receiver('answers after 8 s'),
    'exporter paused': operated(
        (exporters, id) => exporters.pause(id),
        (exporters, id) => exporters.resume(id),
    ),
    [STOPPED]: operated(
        (exporters, id) => exporters.stop(id),
        (exporters, id) => exporters.start(id, { wait: false }),
    ),
};

/** One fault that is going to happen. Times in milliseconds from the start. */
export interface Fault {
    readonly kind: string;
    /** What it happens to. */
    readonly target: string;
    readonly at: number;
    readonly duration: number;
}

/** One that has happened. Milliseconds of the machine's clock. */
export interface RecordedFault extends Fault {
    readonly from: number;
    readonly until: number;
    /** Milliseconds after `until` in which an attempt may suffer from it; null when no message may go out twice because of it. */
    readonly excuses: number | null;
    /** The loopback address of the process that it happens to, null for all of them. */
    readonly address: string | null;
}

export interface PlanOptions {
    readonly seed: number;
    /** How long faults happen, and how long after them it may take until nothing is left to do. Milliseconds. */
    readonly duration: number;
    readonly patience: number;
    /** Names of the processes. */
    readonly processes: readonly string[];
}

/** The first fault, and how far apart they are. Milliseconds. */
const FIRST = 2_000;
const GAP: readonly [number, number] = [3_000, 6_000];

/** A target has so many milliseconds of peace after a fault. A receiver's: until its exporter's breaker has probed it. */
const PEACE: Readonly<Record<Kind['on'], number>> = { process: 3_000, redis: 3_000, postgres: 3_000, receiver: 25_000, exporter: 3_000 };

/** The faults of a seed, always the same: every kind once before any comes again, on one target one at a time. */
export function faultPlan({ seed, duration, patience, processes }: PlanOptions): readonly Fault[] {
    const random = seeded(seed);
    const between = ([low, high]: readonly [number, number]): number => low + random() * (high - low);
    const pick = <T>(list: readonly T[]): T | undefined => list[Math.floor(random() * list.length)];
    const ofSort = { process: processes, receiver: EXPORTERS, exporter: EXPORTERS, redis: ['Redis'], postgres: ['PostgreSQL'] };
    const busyUntil = new Map<string, number>();
    const faults: Fault[] = [];
    let deck: string[] = [];

    const drawn = (at: number): Fault | null => {
        for (const [position, name] of deck.entries()) {
            const { on, seconds, recovery, targets = ofSort[on] } = KINDS[name] as Kind;
            const length = Math.round(1000 * between(seconds));
            const target = pick(targets.filter((each) => (busyUntil.get(each) ?? 0) <= at));
            if (target !== undefined && at + length + 1000 * recovery <= duration + patience) {
                deck.splice(position, 1);
                return { kind: name, target, at: Math.round(at), duration: length };
            }
        }
        return null;
    };

    for (let at = FIRST; at < duration; at += between(GAP)) {
        if (deck.length === 0) {
            deck = shuffled(Object.keys(KINDS), random);
        }
        const fault = drawn(at);
        if (fault !== null) {
            faults.push(fault);
            busyUntil.set(fault.target, at + fault.duration + PEACE[(KINDS[fault.kind] as Kind).on]);
        }
    }

    return faults;
}

function shuffled<T>(list: readonly T[], random: () => number): T[] {
    return list
        .map((value) => ({ value, order: random() }))
        .toSorted((one, other) => one.order - other.order)
        .map(({ value }) => value);
}

/** Lets it happen, and resolves when it is over; rejects when it was called off, also over by then. */
export async function happen(fault: Fault, deployment: Deployment, signal: AbortSignal): Promise<RecordedFault> {
    const kind = KINDS[fault.kind] as Kind;
    const { excuses } = kind;
    const hit = deployment.members.find(({ name }) => name === fault.target);
    const recorded = {
        ...fault,
        from: trueTime(),
        excuses: excuses === undefined ? null : 1000 * excuses,
        address: hit?.address() ?? null,
    };
    if (kind.on === 'receiver') {
        const behave = (behaviour: ReceiverBehaviour): void => deployment.tellReceiver({ exporter: fault.target, behaviour });
        await lasting(
            () => behave(kind.behaviour),
            () => behave('good'),
        )(null, fault.duration, signal);
        if (fault.kind === GONE) {
            await insisting(() => restored(deployment, fault.target), signal);
        }
    } else if (kind.on === 'exporter') {
        const { admin, exporters } = deployment;
        await kind.run(admin.webhooks.exporters, exporters.get(fault.target) as string, fault.duration, signal);
    } else if (kind.on !== 'process') {
        await kind.run(deployment, fault.duration, signal);
    } else if (hit !== undefined) {
        await kind.run(hit, fault.duration, signal);
    }

    return { ...recorded, until: trueTime() };
}
