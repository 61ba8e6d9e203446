import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import type { Deletions } from '../../lib/inventory/deletions.ts';
import type { Selection } from '../../lib/inventory/selection.ts';
import type { Collection, ReadOptions } from '../../lib/inventory/store.ts';
import { workspacesSeen } from '../route-authorization.ts';
import type { Resource } from './handlers.ts';
import type { ResourceRow } from './options.ts';

const WORKSPACES = '/workspaces';

/**
 * Lets a key that sees some workspaces only into nothing else: what is in none, as a resource of the application's own may be, included.
 * The store is not asked, so that what exists and what does not are one.
 *
 * @returns The workspaces that the index of workspaces shows; null where there is nothing left to choose.
 */
export function seenAt({ path }: Resource, request: Request, [workspace]: readonly number[]): ReadonlySet<number> | null {
    const seen = workspacesSeen(request);
    if (seen === null) {
        return null;
    }

    const isBelow = path === WORKSPACES || path.startsWith(`${WORKSPACES}/{`);
    if (!isBelow || (workspace !== undefined && !seen.has(workspace))) {
        throw Boom.notFound();
    }

    return workspace === undefined ? seen : null;
}

/** The rows of these ids, as a collection of which parts can be asked for as of the whole. */
export function limitedTo(ids: ReadonlySet<number>, rows: Collection<ResourceRow>): Collection<ResourceRow> {
    const select: NonNullable<typeof rows.select> = (path, { limit, ...selection }, options) =>
        firstOf(limit ?? Number.POSITIVE_INFINITY, only(ids, (rows.select as NonNullable<typeof rows.select>)(path, selection, options)));
    const { listText: _, ...parts } = rows;
    return {
        ...parts,
        list: (path, options) => only(ids, rows.list(path, options)),
        ...(rows.select && { select }),
        ...(rows.deletions !== undefined && { deletions: deletionsOf(ids, rows.deletions) }),
        ...(rows.count && {
            async count(path: readonly number[], where: NonNullable<Selection['where']>, options: ReadOptions = {}) {
                let total = 0;
                for await (const batch of select(path, { where }, options)) {
                    total += batch.length;
                }
                return total;
            },
        }),
    };
}

/** The deletions of rows of these ids. */
function deletionsOf(ids: ReadonlySet<number>, { since, select }: Deletions): Deletions {
    return {
        since,
        select: (path, { limit, ...selection }, options) =>
            firstOf(limit ?? Number.POSITIVE_INFINITY, only(ids, select(path, selection, options))),
    };
}

async function* firstOf<Row>(limit: number, batches: AsyncIterable<readonly Row[]>): AsyncGenerator<readonly Row[]> {
    let left = limit;
    for await (const batch of batches) {
        yield batch.slice(0, left);
        left -= batch.length;
        if (left <= 0) {
            return;
        }
    }
}

/** Batches without the rows of other ids. What is no batch goes through, to be refused like any other. */
async function* only<Row extends ResourceRow>(
    ids: ReadonlySet<number>,
    batches: AsyncIterable<readonly Row[]>,
): AsyncGenerator<readonly Row[]> {
    for await (const batch of batches) {
        yield Array.isArray(batch) ? batch.filter(({ id }: Row) => ids.has(id)) : batch;
    }
}
