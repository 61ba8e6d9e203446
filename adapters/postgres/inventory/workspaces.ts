import { setTimeout as sleep } from 'node:timers/promises';
import { ScanwireError } from '../../../lib/errors.ts';
import { checkedWorkspaceChanges } from '../../../lib/inventory/boundary.ts';
import { refuseUnstorableName, type Workspace } from '../../../lib/inventory/resources.ts';
import type { WorkspaceChanges } from '../../../lib/inventory/store.ts';
import { unknownWorkspace } from '../../../lib/inventory/workspace-names.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type Patience, type PoolLike, transaction } from '../database.ts';
import { endDeadImport } from '../imports/staged-changes.ts';
import type { StoreClock } from '../store-clock.ts';

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
    /** Differs whenever the lease was renewed. */
    readonly lease: string | null;
}

/** The workspace of that name, made unless it exists, and shown from now on. */
export async function ensureWorkspace(database: Executor, name: string, at: Date): Promise<Workspace> {
    refuseUnstorableName(name);
    await database.query(
        `insert into scanwire.workspaces (name, created_at, updated_at) values ($1, $2, $2)
         on conflict (name) do update set generation = 0 where workspaces.generation < 0`,
        [name, at],
    );
    return await onlyWorkspace(database, 'name = $1', name);
}

/** The workspace of that name, if there is one. */
export async function findWorkspace(database: Executor, name: string): Promise<Workspace | undefined> {
    const sql = `select ${WORKSPACE_COLUMNS} from scanwire.workspaces rows where name = $1`;
    return (await database.query<Workspace>(sql, [name])).rows[0];
}

/** The same, unless it is only being made. */
export async function shownWorkspace(database: Executor, name: string): Promise<Workspace | undefined> {
    const sql = `select ${WORKSPACE_COLUMNS} from scanwire.workspaces rows where name = $1 and generation >= 0`;
    return (await database.query<Workspace>(sql, [name])).rows[0];
}

/** Changes what is said of the workspace of that name. */
export async function updateWorkspace(database: Executor, name: string, changes: WorkspaceChanges, at: Date): Promise<Workspace> {
    const { boundary, limit_to_network } = checkedWorkspaceChanges(changes);
    const { rows } = await database.query<Workspace>(
        `update scanwire.workspaces rows set updated_at = $2, limit_to_network = coalesce($3::boolean, limit_to_network),
            boundary = case when $4::boolean then $5::text else boundary end
         where name = $1 and generation >= 0 returning ${WORKSPACE_COLUMNS}`,
        [name, at, limit_to_network ?? null, boundary !== undefined, boundary ?? null],
    );
    if (rows[0] === undefined) {
        throw unknownWorkspace(name);
    }

    return rows[0];
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
        `select id, import_id, import_id is not null and import_until >= scanwire.now() as busy, import_until::text as lease
         from scanwire.workspaces where name = $1 for no key update`,
        [name],
    );
    if (rows[0] === undefined) {
        throw new ScanwireError('CONFLICT', 'The workspace was removed while it was looked for');
    }

    return rows[0];
}

/** In the order of their names, so that two who want several of them do not lock each other out. */
async function lockWorkspaces(client: Executor, names: readonly string[], at: Date): Promise<ReadonlyMap<string, LockedWorkspace>> {
    const locked = new Map<string, LockedWorkspace>();
    for (const name of [...new Set(names)].sort()) {
        locked.set(name, await lockWorkspace(client, name, at));
    }
    return locked;
}

/** How long a turn is waited for. */
export interface Turn {
    readonly clock: StoreClock;
    /** A statement that takes a lock which whoever runs beside us takes before that of the workspace. */
    readonly lock?: string;
    /** By `performance.now()`, which is never set: when whoever waits is done with waiting; without it, he waits for as long as the import at work gets on. */
    readonly giveUpAt?: number;
    /** For the database. */
    readonly patience?: Patience;
}

/** An import that gets on renews its lease; one that has not for so long, and holds it still, is not waited for. In milliseconds. */
const STANDS_STILL = 60_000;

/**
 * Runs a short transaction of the only writer of the workspace, which is made when missing. While an import is at work there, this waits
 * without a connection; what an import that died has left is removed first.
 *
 * @throws ScanwireError `UNAVAILABLE` when it has waited long enough.
 */
export async function inTurn<T>(
    pool: PoolLike,
    { name, ...turn }: Turn & { readonly name: string },
    run: (client: Executor, workspaceId: number) => Promise<T>,
): Promise<T> {
    return await inTurns(pool, [name], turn, (client, [id]) => run(client, id as number));
}

/** The same in several workspaces at once, whose ids come in the order of `names`. */
export async function inTurns<T>(
    pool: PoolLike,
    names: readonly string[],
    turn: Turn,
    run: (client: Executor, workspaceIds: readonly number[]) => Promise<T>,
): Promise<T> {
    const check = patience(turn);
    for (;;) {
        const look = async (client: Executor) => {
            if (turn.lock !== undefined) {
                await client.query(turn.lock);
            }

            const locked = await lockWorkspaces(client, names, await turn.clock(client));
            const taken = [...locked.values()].find(({ import_id }) => import_id !== null);
            return taken === undefined
                ? {
                      result: await run(
                          client,
                          names.map((name) => locked.get(name)?.id ?? 0),
                      ),
                  }
                : taken;
        };
        const found = await transaction(pool, look, turn.patience ?? IMPATIENT_OF_SILENCE);
        if ('result' in found) {
            return found.result;
        }

        if (found.busy) {
            check(found.lease);
            await sleep(POLL);
        } else {
            await endDeadImport(pool, { workspaceId: found.id, importId: found.import_id ?? '' });
        }
    }
}

/** @returns To be told the lease that stands in the way; throws when it has stood there for too long. */
function patience({ giveUpAt }: Turn): (lease: string | null) => void {
    let seen: string | null = null;
    let until = giveUpAt ?? 0;
    return (lease) => {
        if (giveUpAt === undefined && lease !== seen) {
            seen = lease;
            until = performance.now() + STANDS_STILL;
        }

        if (performance.now() > until) {
            throw new ScanwireError('UNAVAILABLE', 'An import is at work in the workspace, and was waited for long enough');
        }
    };
}
