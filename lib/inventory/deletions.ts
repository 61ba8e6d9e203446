import Joi from 'joi';
import type { ReadOptions } from './store.ts';

/** A row that was deleted, or moved below other parents. It has no more than that: whoever is told of it had the rest. */
export interface Deletion {
    readonly id: number;
    readonly deleted_at: Date;
}

/** The fields of a {@link Deletion} in the order in which they go out. */
export const deletionSchema: Joi.ObjectSchema<Deletion> = Joi.object<Deletion>({
    id: Joi.number().integer().required(),
    deleted_at: Joi.date().required(),
});

/** Which deletions are wanted, in ascending `deleted_at` and id. */
export interface DeletionSelection {
    /** Those of this instant or later. */
    readonly since: Date;
    /** Those behind this one. */
    readonly after?: Deletion;
    /** At most so many, 1 or more; all without it. */
    readonly limit?: number;
}

/**
 * What was deleted from a collection, for who keeps a copy of it. A row that is there again, as a host that was moved back is, counts as
 * changed and not as deleted. With a row all that is below it goes, and is not told of besides: of the services of a deleted host nothing.
 */
export interface Deletions {
    /** What was deleted before this instant may not be known any more. It is at least {@link DELETIONS_KEPT} ago where the store is as old. */
    since(options?: ReadOptions): Promise<Date>;

    /** The deletions below `parents`, in batches. */
    select(parents: readonly number[], selection: DeletionSelection, options?: ReadOptions): AsyncIterable<readonly Deletion[]>;
}

/** For how long a deletion is told, in milliseconds: 90 days. */
export const DELETIONS_KEPT: number = 90 * 86_400_000;

/** For how much longer it is kept: whoever has asked whether it is told may still be reading. In milliseconds. */
export const DELETIONS_MARGIN = 86_400_000;

/** Negative where the one comes before the other. */
export function compareDeletions(one: Deletion, other: Deletion): number {
    return one.deleted_at.getTime() - other.deleted_at.getTime() || one.id - other.id;
}
