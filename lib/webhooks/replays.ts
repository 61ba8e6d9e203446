import Joi from 'joi';
import { checked } from '../checked.ts';
import { ScanwireError } from '../errors.ts';
import type { WebhooksContext } from './options.ts';
import type { Dispatched } from './store.ts';

/**
 * A replay of what an exporter was sent in vain, tests aside: its deliveries that are `exhausted` or `poisoned`, and those that wait to be tried once more,
 * which are then due; or of those that are `held`. It goes on in slices, in whichever process runs, until it is done or cancelled.
 */
export interface Replay extends ReplaySelection {
    /** UUID. */
    readonly id: string;
    /** Deliveries a second. */
    readonly rate: number;
    /** How many there were when it was planned; some may have ended otherwise by their turn. */
    readonly total: number;
    readonly done: number;
    /** `cancelled` too when its exporter was removed. */
    readonly state: 'running' | 'done' | 'cancelled';
    readonly createdAt: Date;
    /** When it was done or cancelled, else null. */
    readonly finishedAt: Date | null;
}

/** Which deliveries are sent once more. */
export interface ReplaySelection {
    readonly exporterId: string;
    /** Those whose last attempt began, or that have ended, at this time or later; null for those that are `held`. */
    readonly failedSince: Date | null;
}

/** Replays that are kept in the store. Methods reject with ScanwireError `NOT_FOUND` for an unknown exporter or replay. */
export interface ReplayStore {
    /** How many deliveries a replay that is planned now would have. */
    count(selection: ReplaySelection): Promise<number>;
    plan(replay: Pick<Replay, 'id' | 'exporterId' | 'failedSince' | 'rate'>): Promise<Replay>;
    /** Newest first; of these exporters only, where some, or none, are named. A store may not heed that: then some may be missed. */
    list(limit: number, exporterIds?: readonly string[]): Promise<readonly Replay[]>;
    /**
     * Makes the deliveries of all that are unfinished `pending` and due as their rates allow by now, a second's worth and `limit` of each at most: those
     * that have ended before those that wait. They are handed out like retries, behind first tries. Each restarts its retry schedule, with the same
     * bytes and message id. What fails again after the replay was planned is none of it. Any number of processes may do so at once.
     *
     * @returns Whether any is unfinished.
     */
    advance(limit: number): Promise<boolean>;
    /** What has been replayed by now goes on. One that has ended stays as it is. */
    cancel(id: string): Promise<Replay>;
}

/** What is to be replayed, and how. */
export interface ReplayOptions {
    readonly exporterId: string;
    /** Those whose last attempt began, or that have ended, at this time or later. */
    readonly failedSince?: Date;
    /** In place of `failedSince`: those that are `held`. */
    readonly held?: true;
    /** Deliveries a second, 1 to 1,000. Default 100. */
    readonly rate?: number;
}

/** The rules of {@link ReplayOptions}, with their defaults. */
export const replaySchema: Joi.ObjectSchema<CheckedReplay> = Joi.object<CheckedReplay>({
    exporterId: Joi.string().required().description('Whose deliveries are sent once more'),
    failedSince: Joi.date().iso().description('Those that were sent in vain at this time or later'),
    held: Joi.boolean()
        .valid(true)
        .description('In place of `failedSince`: those that are held, since an outcome had stopped the exporter'),
    rate: Joi.number().integer().min(1).max(1000).default(100).description('Deliveries a second'),
})
    .xor('failedSince', 'held')
    .label('replay')
    .required();

type CheckedReplay = ReplayOptions & Pick<Replay, 'rate'>;

function selectionOf({ exporterId, failedSince }: ReplayOptions): ReplaySelection {
    return { exporterId, failedSince: failedSince ?? null };
}

/** Replays of many deliveries. Methods reject with ScanwireError `NOT_FOUND` for an unknown exporter or replay. */
export interface Replays {
    /** How many deliveries it would have. @throws ScanwireError `INVALID_INPUT` with the field. */
    count(options: ReplayOptions): Promise<number>;
    /** Begins it. @throws ScanwireError `INVALID_INPUT` with the field. */
    begin(options: ReplayOptions): Promise<Replay>;
    /** The newest 100, newest first; of these exporters only, where some, or none, are named. */
    list(exporterIds?: readonly string[]): Promise<readonly Replay[]>;
    /** Ends it; what has been replayed by now goes on. */
    cancel(id: string): Promise<Replay>;
}

const MAX_LISTED = 100;

/** The replays of a store. @throws ScanwireError `MISCONFIGURED` in each method when the store keeps none. */
export function replaysOf({ deliveries, dispatcher, newId }: WebhooksContext): Replays {
    function store(): ReplayStore {
        if (deliveries.replays === undefined) {
            throw new ScanwireError('MISCONFIGURED', 'Cannot replay many deliveries: the store keeps no replays');
        }
        return deliveries.replays;
    }

    return {
        async count(options) {
            return store().count(selectionOf(checked(replaySchema, options)));
        },

        async begin(options) {
            const valid = checked(replaySchema, options);
            const replay = await store().plan({ id: newId(), rate: valid.rate, ...selectionOf(valid) });
            dispatcher.replay();
            return replay;
        },

        async list(exporterIds) {
            const found = await store().list(MAX_LISTED, exporterIds);
            return found.filter(({ exporterId }) => exporterIds?.includes(exporterId) !== false);
        },
        cancel: async (id) => store().cancel(id),
    };
}

/**
 * Milliseconds between two steps of replays: at least; at most while their deliveries are handed out; at most while none are; and while no replay is
 * known. A step costs as much whether it has one delivery or ten.
 */
const STEP_EVERY = { least: 25, most: 100, unused: 500, unknown: 10_000 } as const;

/** Deliveries that a step should have; steps become rarer or more frequent until it has. */
const OF_A_STEP = { least: 8, most: 16 } as const;

/** The most deliveries of one replay that a step makes due. */
const MOST_OF_A_STEP = 1_000;

/** What was handed out after a step. */
export interface AfterStep {
    /** How many were added to the queue. */
    readonly atOnce: number;
    /** Those that are to be added one after the other until the next step. */
    readonly inTurns: readonly Dispatched[];
}

/** Lets replays go on, step by step, when it is time. */
export function replaySteps(
    { deliveries: { replays }, monotonic }: Pick<WebhooksContext, 'deliveries' | 'monotonic'>,
    addInTurns: Turns<Dispatched>['give'],
) {
    let next = Number.NEGATIVE_INFINITY;
    let isUnfinished = false;
    let pause: number = STEP_EVERY.least;
    return {
        now(): void {
            next = Number.NEGATIVE_INFINITY;
        },

        /** @returns Whether it was time. */
        async advance(): Promise<boolean> {
            if (replays === undefined || monotonic() < next) {
                return false;
            }

            // Before it is asked: where that fails, what is due is dispatched all the same, and replays wait.
            next = monotonic() + STEP_EVERY.unknown;
            isUnfinished = false;
            isUnfinished = await replays.advance(MOST_OF_A_STEP);
            next = isUnfinished ? monotonic() + pause : next;
            return isUnfinished;
        },

        /** @returns After how many milliseconds; null when none is unfinished. */
        goOnAfter(advanced: boolean, { atOnce, inTurns }: AfterStep): number | null {
            const untilNext = isUnfinished ? Math.max(0, next - monotonic()) : null;
            if (advanced) {
                pause = pauseAfter(pause, atOnce, inTurns.length);
                addInTurns(inTurns, untilNext ?? 0);
            }
            return untilNext;
        },
    };
}

/** What is sent at once slows down the new events of that moment, so that it should be little. */
function pauseAfter(pause: number, atOnce: number, inTurns: number): number {
    if (atOnce + inTurns === 0) {
        return Math.min(2 * pause, STEP_EVERY.unused);
    }
    if (atOnce > 0 || inTurns > OF_A_STEP.most) {
        return Math.max(Math.min(pause, STEP_EVERY.most) / 2, STEP_EVERY.least);
    }
    return Math.min(inTurns < OF_A_STEP.least ? 2 * pause : pause, STEP_EVERY.most);
}

/** Hands on what it gets in turns. */
export interface Turns<Item> {
    /** Evenly within so many milliseconds; what is left of an earlier call at once. */
    give(items: readonly Item[], milliseconds: number): void;
    /** What is left, at once. */
    end(): void;
}

/** The least milliseconds between two turns: together, several are cheaper. */
const TURN_EVERY = 5;

/** Turns of what would be too much for one moment. */
export function evenly<Item>(handOn: (items: readonly Item[]) => void): Turns<Item> {
    let left: readonly Item[] = [];
    let timer: NodeJS.Timeout | undefined;

    function turn(count: number): void {
        const [items, rest] = [left.slice(0, count), left.slice(count)];
        left = rest;
        if (rest.length === 0) {
            clearInterval(timer);
        }
        if (items.length > 0) {
            handOn(items);
        }
    }

    return {
        give(items, milliseconds) {
            turn(left.length);
            const turns = Math.max(1, Math.min(items.length, Math.floor(milliseconds / TURN_EVERY)));
            const each = Math.ceil(items.length / turns);
            left = items;
            timer = setInterval(() => turn(each), Math.floor(milliseconds / turns));
            turn(each);
        },

        end: () => turn(left.length),
    };
}
