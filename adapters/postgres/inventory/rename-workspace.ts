import type { Workspace } from '../../../lib/inventory/resources.ts';
import { newWorkspaceName, unknownWorkspace, workspaceNameTaken } from '../../../lib/inventory/workspace-names.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, patiently } from '../database.ts';
import { isUniqueViolation } from '../database-errors.ts';
import type { StoreClock } from '../store-clock.ts';
import { findWorkspace, inTurn, shownWorkspace, WORKSPACE_COLUMNS } from './workspaces.ts';

/** In turn with imports, which look for their workspace by its name: one that is at work would go on in another one. */
export async function renameWorkspace(pool: PoolLike, name: string, newName: string, clock: StoreClock): Promise<Workspace> {
    const to = newWorkspaceName(newName);
    const database = patiently(pool, IMPATIENT_OF_SILENCE);
    // Whose turn is waited for is made where it is missing.
    if ((await shownWorkspace(database, name)) === undefined) {
        throw unknownWorkspace(name);
    }

    if (name === to) {
        throw workspaceNameTaken(to);
    }

    if ((await findWorkspace(database, to)) !== undefined) {
        // It may be only being made: who makes it is waited for, and what he has left behind when he died is removed.
        await inTurn(pool, { name: to, clock }, async () => {});
    }
    return await inTurn(pool, { name, clock }, async (client, id) => renameNow(client, { id, name, to, at: await clock(client) }));
}

/** Of an import that brought it no further. */
const FORGET = 'delete from scanwire.workspaces where name = $1 and generation < 0 and import_id is null';
const RENAME = `update scanwire.workspaces rows set name = $2, updated_at = $3 where id = $1 and generation >= 0 returning ${WORKSPACE_COLUMNS}`;

async function renameNow(
    client: Executor,
    { id, name, to, at }: { readonly id: number; readonly name: string; readonly to: string; readonly at: Date },
): Promise<Workspace> {
    await client.query(FORGET, [to]);
    try {
        const { rows } = await client.query<Workspace>(RENAME, [id, to, at]);
        if (rows[0] === undefined) {
            throw unknownWorkspace(name);
        }
        return rows[0];
    } catch (error) {
        throw isUniqueViolation(error) ? workspaceNameTaken(to, error) : error;
    }
}
