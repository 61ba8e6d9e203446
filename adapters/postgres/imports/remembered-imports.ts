import { anyChanged, type ImportedCounts } from '../../../lib/inventory/import-counts.ts';
import type { Workspace } from '../../../lib/inventory/resources.ts';
import type { ImportOrigin } from '../../../lib/inventory/store.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { VERSION } from '../../../lib/version.ts';
import { WORKSPACE_COLUMNS } from '../inventory/workspaces.ts';
import type { StoreClock } from '../store-clock.ts';
import { type Lease, OWN_WRITE } from './import-lease.ts';

/** What decides what an import of hosts makes of them, besides their workspace. */
interface Import {
    readonly origin: ImportOrigin;
    readonly replace: boolean;
}

/** An import after which its workspace has stayed as it was. */
export interface RememberedImport {
    readonly importId: string;
    readonly workspace: Workspace;
    /** Of the same once more. */
    readonly counts: ImportedCounts;
    /** When it was found: the workspace was so by then. */
    readonly at: Date;
    /** Ids of those that it has named and that are not down. */
    readonly hosts: readonly number[];
}

const RECALL = `select ${WORKSPACE_COLUMNS}, remembered.import_id, counts
from scanwire.workspaces rows join scanwire.remembered_imports remembered on remembered.workspace_id = rows.id
where name = $1 and generation >= 0 and origin = $2 and replace = $3 and version = '${VERSION}' and counts is not null
    and (remembered.boundary, remembered.limit_to_network) is not distinct from (rows.boundary, rows.limit_to_network)
    and foreign_writes = (select last_value from scanwire.foreign_writes)`;

/** The same import into the workspace of that name, if there was one, and all is as it was after it. */
export async function recall(
    database: Executor,
    name: string,
    { origin, replace }: Import,
    clock: StoreClock,
): Promise<RememberedImport | null> {
    const at = await clock(database);
    type Found = Workspace & { readonly import_id: string; readonly counts: ImportedCounts };
    const [found] = (await database.query<Found>(RECALL, [name, origin.id, replace])).rows;
    if (found === undefined) {
        return null;
    }

    const { import_id: importId, counts, ...workspace } = found;
    const { rows } = await database.query<{ hosts: readonly number[] }>(
        'select hosts from scanwire.remembered_hosts where import_id = $1 order by number',
        [importId],
    );
    return { importId, workspace, counts, at, hosts: rows.flatMap(({ hosts }) => hosts) };
}

/**
 * Notes, where the import takes its lease, what it is going to be remembered by. It is not where somebody else is writing: what he has not committed the
 * import cannot see.
 */
export async function beginToRemember(
    client: Executor,
    { workspaceId, importId }: Lease,
    { origin, replace, workspace, at }: Import & { readonly workspace: Workspace; readonly at: Date },
): Promise<void> {
    const { rows } = await client.query<{ alone: boolean }>(
        `select pg_try_advisory_xact_lock(hashtext('scanwire.foreign_writes'), 0) as alone`,
    );
    if (rows[0]?.alone === true) {
        await client.query(
            `insert into scanwire.remembered_imports
                (import_id, workspace_id, origin, version, replace, boundary, limit_to_network, used_at, foreign_writes)
             select $1, $2, $3, $4, $5, $6, $7, $8, last_value from scanwire.foreign_writes`,
            [importId, workspaceId, origin.id, VERSION, replace, workspace.boundary, workspace.limit_to_network, at],
        );
    }
}

/** What an import has come to. */
interface Outcome {
    readonly imported: ImportedCounts;
    /** Of the same once more; null where that cannot be said, so that it is not remembered. */
    readonly again: ImportedCounts | null;
}

/** So many hosts of a workspace are remembered, those of each import for themselves, or the hosts of one import. */
const MOST_HOSTS = 1_000_000;
/** What an import takes besides its hosts is worth so many of them. */
const OF_EACH = 100;

const FORGET_OLD = `delete from scanwire.remembered_imports where import_id in (
    select import_id from (
        select import_id, row_number() over (partition by origin, replace order by import_id = $2 desc, used_at desc) as copy,
            sum(host_count + ${OF_EACH}) over (order by import_id = $2 desc, used_at desc, import_id) as together
        from scanwire.remembered_imports where workspace_id = $1
    ) kept
    where copy > 1 or (together > ${MOST_HOSTS} and import_id <> $2)
)`;

/** Remembers an import, in the transaction that shows it, unless it was not to be; and forgets the others where it has changed anything. */
export async function remember(client: Executor, { workspaceId, importId }: Lease, { imported, again }: Outcome): Promise<void> {
    const forgotten = `delete from scanwire.remembered_imports where workspace_id = $1 and import_id`;
    if (anyChanged(imported)) {
        await client.query(`${forgotten} <> $2`, [workspaceId, importId]);
    }
    if (again === null) {
        await client.query(`${forgotten} = $2`, [workspaceId, importId]);
        return;
    }

    const { rowCount } = await client.query(
        `update scanwire.remembered_imports set counts = $2,
            host_count = (select coalesce(sum(cardinality(hosts)), 0) from scanwire.remembered_hosts where import_id = $1)
         where import_id = $1`,
        [importId, JSON.stringify(again)],
    );
    if (rowCount === 1) {
        await client.query(FORGET_OLD, [workspaceId, importId]);
    }
}

/** The import has come once more. */
export async function rememberAgain(client: Executor, { importId, at }: RememberedImport): Promise<void> {
    await client.query('update scanwire.remembered_imports set used_at = greatest(used_at, $2) where import_id = $1', [importId, at]);
}

/** Forgets the imports into workspaces whose only writer changes something in this transaction. */
export async function forgetImports(client: Executor, workspaceIds: readonly number[]): Promise<void> {
    await client.query(OWN_WRITE);
    await client.query('delete from scanwire.remembered_imports where workspace_id = any ($1::integer[])', [workspaceIds]);
}
