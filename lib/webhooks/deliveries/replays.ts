import Joi from 'joi';
import { ScanwireError } from '../../errors.ts';
import { checked } from '../../schema-validation.ts';
import type { WebhooksContext } from '../webhooks-context.ts';

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
     * Makes the deliveries of all that are unfinished `pending` and due as their rates allow by now, of each `limit` and a second's worth at
     * most, a tenth of that (or one) when it was just planned: those that have ended before those that wait. They are handed out like retries, behind first tries. Each restarts its retry schedule, with the same
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
