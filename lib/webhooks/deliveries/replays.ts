import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import { checked, storableText, storableTime } from '../../schema-validation.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

/**
 * Sends many deliveries of an exporter once more, tests aside: either those that failed (`exhausted`, `poisoned`, or waiting for another try,
 * which then are due at once), or those that are `held`. It goes on in steps, in whichever process runs, until it is done or cancelled.
 */
export interface Replay extends ReplaySelection {
    /** UUID. */
    readonly id: string;
    /** Deliveries a second. */
    readonly rate: number;
    /** How many deliveries there were when it was planned. Some may have gone on otherwise by the time of their turn: `done` stays below it then. */
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
    /** The failed ones that have ended at this time or later, or wait and were last handed out at this time or later; null for those that are `held`. */
    readonly failedSince: Date | null;
}

/** Replays that are kept in the store. Methods reject with ScanwireError `NOT_FOUND` for an unknown exporter or replay. */
export interface ReplayStore {
    /** How many deliveries a replay that is planned now would have. */
    count(selection: ReplaySelection): Promise<number>;
    plan(replay: Pick<Replay, 'id' | 'exporterId' | 'failedSince' | 'rate'>): Promise<Replay>;
    get(id: string): Promise<Replay>;
    /**
     * The newest `limit`, and of the older ones those that are `running`; newest first. Only those of these exporters, where a list is given, even
     * an empty one. A store that does not heed the list answers with those of all exporters, so that older replays of these exporters may be missing.
     */
    list(limit: number, exporterIds?: readonly string[]): Promise<readonly Replay[]>;
    /**
     * Advances every unfinished replay: makes as many of its deliveries `pending` and due as its rate allows by now. In one call that is at most
     * `limit` deliveries of each replay, and at most a second's worth of them. The first call after a replay was planned takes a tenth of a second's
     * worth, at least one delivery. Deliveries that have ended come
     * before those that wait. They are handed out like retries, behind first tries. Each begins its retry schedule anew, with the same bytes and
     * message id. A delivery that fails after the replay was planned, and waits again or has ended by that, is no part of it, and none is replayed twice, so
     * that `done` never passes `total`. Any number of processes may call this at once.
     *
     * @returns Whether any replay is unfinished.
     */
    advance(limit: number): Promise<boolean>;
    /** Ends a replay. What it has replayed by now goes on. A replay that has ended stays as it is. */
    cancel(id: string): Promise<Replay>;
}

/** What is to be replayed, and how. */
export interface ReplayOptions {
    readonly exporterId: string;
    /** The failed ones that have ended at this time or later, or wait and were last handed out at this time or later. */
    readonly failedSince?: Date;
    /** In place of `failedSince`: those that are `held`. */
    readonly held?: true;
    /** Deliveries a second, 1 to 1,000. Default 100. */
    readonly rate?: number;
}

/** The rules of {@link ReplayOptions}, with their defaults. */
export const replaySchema: Joi.ObjectSchema<CheckedReplay> = Joi.object<CheckedReplay>({
    exporterId: storableText().required().description('Whose deliveries are sent once more'),
    failedSince: storableTime().description('Those that were sent in vain at this time or later'),
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
    show(id: string): Promise<Replay>;
    /**
     * The newest 100, and of the older ones those that are `running`; newest first. Only those of these exporters, where a list is given, even an
     * empty one.
     */
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

        show: async (id) => store().get(id),

        async list(exporterIds) {
            const found = await store().list(MAX_LISTED, exporterIds);
            return found.filter(({ exporterId }) => exporterIds?.includes(exporterId) !== false);
        },
        cancel: async (id) => store().cancel(id),
    };
}
