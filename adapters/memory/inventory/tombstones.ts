import type { Clock } from '../../../lib/clock.ts';
import { compareDeletions, DELETIONS_KEPT, DELETIONS_MARGIN, type Deletion, type Deletions } from '../../../lib/inventory/deletions.ts';

type Kind = 'workspaces' | 'hosts' | 'services' | 'notes' | 'vulns';

interface Tombstone extends Deletion {
    /** Ids of what it was below, from the outside in. */
    readonly path: readonly number[];
}

/** Rows of an inventory that were deleted, in the order of their deletion. */
export interface Tombstones {
    bury(kind: Kind, id: number, path: readonly number[]): void;
    /** A host goes from one workspace to another, where it is deleted no more, and what was deleted below it goes with it. */
    move(hostId: number, from: number, to: number): void;
    /** The deletions below paths of so many ids. */
    of(kind: Kind, ids: number): Deletions;
    /** Notes how all is, and gives what brings that back. */
    save(): () => void;
}

const BATCH = 500;

/** None yet. What was deleted before there was this store nobody knows. */
export function tombstones(clock: Clock): Tombstones {
    const begun = clock();
    let buried = new Map<string, Tombstone & { readonly kind: Kind }>();

    function bury(kind: Kind, id: number, path: readonly number[]): void {
        const oldest = clock().getTime() - DELETIONS_KEPT - DELETIONS_MARGIN;
        for (const [key, { deleted_at }] of buried) {
            if (deleted_at.getTime() >= oldest) {
                break;
            }
            buried.delete(key);
        }
        const key = `${kind} ${id} ${path[0] ?? ''}`;
        // So that it stands at the end.
        buried.delete(key);
        buried.set(key, { kind, id, path, deleted_at: clock() });
    }

    return {
        bury,

        move(hostId, from, to) {
            const below = [...buried].filter(([, { kind, path }]) => kind !== 'hosts' && path[0] === from && path[1] === hostId);
            for (const [key, { kind, id, path }] of below) {
                buried.delete(key);
                bury(kind, id, path.with(0, to));
            }
            buried.delete(`hosts ${hostId} ${to}`);
            bury('hosts', hostId, [from]);
        },

        of: (kind, ids) => ({
            async since() {
                return new Date(Math.max(begun.getTime(), clock().getTime() - DELETIONS_KEPT));
            },

            async *select(path, { since, after = { id: 0, deleted_at: since }, limit }, { signal } = {}) {
                const wanted = [...buried.values()]
                    .filter((one) => one.kind === kind && path.length === ids && path.every((id, depth) => one.path[depth] === id))
                    .filter((one) => compareDeletions(one, after) > 0)
                    .map(({ id, deleted_at }) => ({ id, deleted_at }))
                    .sort(compareDeletions)
                    .slice(0, limit);
                for (let start = 0; start < wanted.length; start += BATCH) {
                    signal?.throwIfAborted();
                    yield wanted.slice(start, start + BATCH);
                }
            },
        }),

        save() {
            const kept = new Map(buried);
            return () => {
                buried = kept;
            };
        },
    };
}
