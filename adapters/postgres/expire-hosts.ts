import { randomUUID } from 'node:crypto';
import type { Clock } from '../../lib/clock.ts';
import { ScanwireError } from '../../lib/errors.ts';
import type { ExpiredHosts, ExpireOptions } from '../../lib/inventory/store.ts';
import { type PoolLike, patiently } from './database.ts';
import { lastSeen } from './sightings.ts';
import { everySlice, lease, release } from './staged-import.ts';
import { inTurn } from './workspaces.ts';

const GENERATION = '(select generation from scanwire.workspaces where id = $1)';
/** Who was never seen was down from the first, and is taken by when that was heard of last. */
const UNSEEN = (since: string): string => `from scanwire.hosts rows where workspace_id = $1 and generation <= ${GENERATION}
    and coalesce(${lastSeen('rows', GENERATION)}, rows.updated_at) < ${since}`;

const REMOVE = `with slice as (select id ${UNSEEN('$4')} and id > $2 order by id limit $3), removed as (
    delete from scanwire.hosts using slice where hosts.id = slice.id
)
select max(id) as last, count(*)::integer as count from slice`;

const END = 'update scanwire.workspaces set hosts_until = null, import_id = null, import_until = null where id = $1 and import_id = $2';

/** Removes hosts slice by slice, between which others work, in turn with imports into the same workspace. */
export async function expireHosts(
    pool: PoolLike,
    name: string,
    { notSeenSince, dryRun = false, clock }: ExpireOptions & { readonly clock: Clock },
): Promise<ExpiredHosts> {
    const database = patiently(pool);
    const { rows } = await database.query<{ id: number }>('select id from scanwire.workspaces where name = $1 and generation >= 0', [name]);
    const id = rows[0]?.id;
    if (id === undefined) {
        throw new ScanwireError('NOT_FOUND', 'Unknown workspace', { field: 'workspace' });
    }

    if (dryRun) {
        const counted = await database.query<{ hosts: number }>(`select count(*)::integer as hosts ${UNSEEN('$2')}`, [id, notSeenSince]);
        return { hosts: counted.rows[0]?.hosts ?? 0 };
    }

    const importId = randomUUID();
    const held = await inTurn(pool, { name, clock }, async (client, workspaceId) => {
        await lease(client, { workspaceId, importId });
        return { workspaceId, importId };
    });
    let hosts = 0;
    const onHosts = (count: number): void => {
        hosts += count;
    };
    try {
        await everySlice(pool, held, REMOVE, { onHosts, values: [notSeenSince] });
        await database.query(END, [held.workspaceId, importId]);
    } catch (error) {
        await release(pool, held);
        throw error;
    }

    return { hosts };
}
