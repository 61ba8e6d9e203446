import * as Boom from '@hapi/boom';
import type Joi from 'joi';
import { describedSchema } from '../../lib/application-schema.ts';
import { DELETIONS_KEPT, type Deletion, type Deletions, deletionSchema } from '../../lib/inventory/deletions.ts';
import type { Position } from '../../lib/inventory/selection.ts';
import type { ReadOptions } from '../../lib/inventory/store.ts';
import type { TimestampFormat } from '../../lib/timestamp.ts';
import { type RowForms, rowForms } from './row-forms.ts';

/** What of an index was deleted, as a request asks for it. */
export interface AskedDeletions {
    readonly since: Date;
    readonly after?: Position;
    readonly limit?: number;
}

const DAYS = DELETIONS_KEPT / 86_400_000;

/** What the parameter is for. */
export const DELETED_SINCE =
    'In place of rows what was deleted at this time or later, each as `{"id":7,"deleted_at":"…"}`, in that order; beside `limit` and `after` alone';

/** How deletions become text. */
export function deletionForms(timestamp: TimestampFormat): RowForms {
    return rowForms(describedSchema({ schema: deletionSchema as Joi.ObjectSchema }, 'Deletions'), timestamp);
}

/**
 * @param known What {@link Deletions.since} says.
 * @throws Boom 410 where the store may not know all that is asked for any more.
 */
export function assertKnown({ since }: AskedDeletions, known: Date): void {
    if (since < known) {
        const rule = `must not lie before ${known.toISOString()}: deletions are told for ${DAYS} days`;
        throw Boom.resourceGone(`deleted_since ${rule}, so read the whole index again`);
    }
}

/** The deletions that are asked for, one more than fit on a page, to tell whether there is a next one. */
export function readDeletions(
    { select }: Deletions,
    path: readonly number[],
    { since, after, limit }: AskedDeletions,
    options: ReadOptions,
): AsyncIterable<readonly Deletion[]> {
    const behind = after?.updated_at && { id: after.id, deleted_at: after.updated_at };
    return select(path, { since, ...(behind && { after: behind }), ...(limit !== undefined && { limit: limit + 1 }) }, options);
}
