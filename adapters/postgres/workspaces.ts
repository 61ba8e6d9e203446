import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../../lib/errors.ts';
import type { Workspace } from '../../lib/inventory/resources.ts';
import type { Executor } from '../../lib/transaction.ts';
import { type PoolLike, transaction } from './database.ts';
import { endDeadImport } from './staged-import.ts';

/** The columns of a {@link Workspace}, from `scanwire.workspaces rows`. */
export const WORKSPACE_COLUMNS = `rows.id, rows.name, rows.boundary, rows.description, rows.owner_id, rows.limit_to_network,
    rows.created_at, rows.updated_at`;

/** How often somebody who waits for his turn looks whether it has come, in milliseconds. */
const POLL = 100;

/** A workspace whose row is locked until the transaction ends. */
interface LockedWorkspace {
    readonly id: number;
    /** The import that holds a lease on it, live or not. */
    readonly import_id: string | null;
    /** Whether that import is at work now. */
    readonly busy: boolean;
}

/** The workspace of that name, made unless it exists, and shown from now on. */
export async function ensureWorkspace(database: Executor, name: string, at: Date): Promise<Workspace> {
    await database.query(
        `insert into scanwire.workspaces (name, created_at, updated_at) values ($1, $2, $2)
         on conflict (name) do update set generation = 0 where workspaces.generation < 0`,
        [name, at],
    );
    return await onlyWorkspace(database, 'name = $1', name);
}

/** The workspace of that id, shown or not. */
export async function readWorkspace(database: Executor, id: number): Promise<Workspace> {
    return await onlyWorkspace(database, 'id = $1', id);
}

async function onlyWorkspace(database: Executor, condition: string, value: unknown): Promise<Workspace> {
    const sql = `select ${WORKSPACE_COLUMNS} from scanwire.workspaces rows where ${condition}`;
    const { rows } = await database.query<Workspace>(sql, [value]);
    if (rows[0] === undefined) {
        throw new ScanwireError('CONFLICT', 'The workspace was removed while it was looked for');
    }

    return rows[0];
}

/** The workspace, made where it is missing (hidden, of generation -1), and locked until the transaction ends: one writer at a time. */
async function lockWorkspace(client: Executor, name: string, at: Date): Promise<LockedWorkspace> {
    await client.query(
        `insert into scanwire.workspaces (name, generation, created_at, updated_at)
         select $1, -1, $2, $2 where not exists (select from scanwire.workspaces where name = $1)
         on conflict (name) do nothing`,
        [name, at],
    );
    const { rows } = await client.query<LockedWorkspace>(
        `select id, import_id, import_id is not null and import_until >= scanwire.now() as busy
         from scanwire.workspaces where name = $1 for no key update`,
        [name],
    );
    if (rows[0] === undefined) {
        throw new ScanwireError('CONFLICT', 'The workspace was removed while it was looked for');
    }

    return rows[0];
}

/**
 * Runs a short transaction of the only writer of the workspace, which is made when missing. While an import is at work there, this waits
 * without a connection; what an import that died has left is removed first.
 */
export async function inTurn<T>(
    pool: PoolLike,
    name: string,
    at: Date,
    run: (client: Executor, workspaceId: number) => Promise<T>,
): Promise<T> {
    for (;;) {
        const turn = await transaction(pool, async (client) => {
            const { id, import_id, busy } = await lockWorkspace(client, name, at);
            return import_id === null ? { result: await run(client, id) } : { id, import_id, busy };
        });
        if ('result' in turn) {
            return turn.result;
        }

        if (turn.busy) {
            await sleep(POLL);
        } else {
            await endDeadImport(pool, { workspaceId: turn.id, importId: turn.import_id });
        }
    }
}
