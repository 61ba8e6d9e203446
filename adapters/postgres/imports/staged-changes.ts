import type { Executor } from '../../../lib/transaction.ts';
import { IMPATIENT_OF_SILENCE, type PoolLike, transaction } from '../database.ts';
import { isSilence } from '../database-errors.ts';
import {
    BURIED,
    type Crowd,
    deleted,
    endOf,
    forgetBuried,
    hostsOfSlice,
    isAside,
    isIn,
    nextKeys,
    ofNext,
    ROWS_BELOW,
    shownGeneration,
    upToCrowd,
    workspaceOf,
} from './crowded-hosts.ts';
import { clearedUp, LEASE, type Lease, noteSilence, release } from './import-lease.ts';
import { everySlice, slice } from './import-slices.ts';
import { FORGET_NAMED, NAMED } from './remove-unnamed.ts';
import { UNSEE } from './sightings.ts';
import { APPLY_FINDINGS, DISCARD_FINDINGS, DISCARDED_FINDINGS, STAGED_FINDINGS } from './stage-findings.ts';
import { assignments } from './stage-hosts.ts';

/** Shows all that was staged, at once. @param also Is done in the same transaction. */
async function show(pool: PoolLike, lease: Lease, generation: number, also: (client: Executor) => Promise<void>): Promise<void> {
    await slice(pool, lease, async (client) => {
        await client.query('set local synchronous_commit to default');
        await also(client);
        await client.query('update scanwire.workspaces set generation = $2, staged_shown = true, hosts_until = null where id = $1', [
            lease.workspaceId,
            generation,
        ]);
    });
}

/**
 * Whether the import is shown.
 *
 * @throws ScanwireError `CONFLICT` when it no longer has the lease.
 */
async function isShown(pool: PoolLike, lease: Lease): Promise<boolean> {
    return await slice(pool, lease, async (client) => {
        const { rows } = await client.query<{ staged_shown: boolean }>('select staged_shown from scanwire.workspaces where id = $1', [
            lease.workspaceId,
        ]);
        return rows[0]?.staged_shown ?? false;
    });
}

/** The next hosts with something laid aside, which is theirs no more. */
function nextStaged(crowds: readonly Crowd[]): string {
    const next = `select host_id as id, services_added + notes_added + vulns_added + coalesce(${ROWS_BELOW}, 0) as below
        from (select * from scanwire.staged_hosts where workspace_id = $1 and host_id > $2 order by host_id limit $3) staged
        left join scanwire.hosts on hosts.id = host_id`;
    return `${upToCrowd(next, crowds)}, slice as (
    delete from scanwire.staged_hosts where workspace_id = $1 and host_id = any (array(select id from fitting)) returning *
)`;
}

/** All below a host, what services have before these. */
const BELOW_HOSTS = ['notes', 'vulns', 'services'].map((table) => ({
    ...deleted(table, (host) => `from scanwire.${table} where host_id = ${host}`),
    table,
}));

const SERVICE_COLUMNS = 'updated_at = staged.updated_at, state = staged.state, name = staged.name, info = staged.info';

/** Takes from what is laid aside for services of the host `$1` those of `next`. */
const FORGET_NEXT = `delete from scanwire.staged_services where ctid = ${ofNext('ctid')}`;

const STAGED_SERVICES: Crowd['rows'] = (host) => `from scanwire.staged_services where host_id = ${host}`;

const FORGOTTEN_SERVICES: Crowd = {
    rows: STAGED_SERVICES,
    thin: [
        `with ${nextKeys('staged_services', 'service_id')}, forgotten as (
            ${FORGET_NEXT}
        ) ${endOf('service_id')}`,
    ],
};

/** What goes with its host. Nothing of it is told as deleted by itself. */
const GONE_CROWDS: readonly Crowd[] = [
    ...BELOW_HOSTS.map(({ thin, ...crowd }) => ({ ...crowd, thin: [...thin, forgetBuried(crowd.table)] })),
    FORGOTTEN_SERVICES,
    BURIED,
];

/** Removes the hosts that go, looking through many for the few of them. */
const REMOVE_GONE = `with looked as materialized (
    select ctid, host_id as id, removed from scanwire.staged_hosts where workspace_id = $1 and host_id > $2 order by host_id limit 20 * $3::integer
), going as materialized (
    select ctid, id from looked where removed order by id limit $3
), ${upToCrowd(`select going.id, coalesce(${ROWS_BELOW}, 0) as below from going left join scanwire.hosts on hosts.id = going.id`, GONE_CROWDS)}, slice as (
    delete from scanwire.staged_hosts where ctid = any (array(select ctid from going where id <= (select max(id) from fitting))) returning host_id
), services_forgotten as (
    delete from scanwire.staged_services where host_id = ${hostsOfSlice()}
), gone as (
    delete from scanwire.hosts where id = ${hostsOfSlice()}
)
select case when count(*) = $3 or count(*) < (select count(*) from going) then max(id) else (select max(id) from looked) end as last,
    count(*)::integer as count, (select id from crowd) as crowd
from fitting`;

/** Of a crowded host, changes and removals of services are moved into place before its own. */
const STAGED_CROWDS: readonly Crowd[] = [
    ...STAGED_FINDINGS,
    {
        rows: STAGED_SERVICES,
        thin: [
            `with ${nextKeys('staged_services', 'service_id')}, moved as (
                ${FORGET_NEXT}
            ), changed as (
                update scanwire.services set ${SERVICE_COLUMNS} from next staged where ${isIn('services.id', 'staged.service_id')} and not staged.removed
            ), counted as materialized (
                select count(*)::integer as services,
                    coalesce(sum((select count(*) from scanwire.notes where service_id = next.service_id)), 0)::integer as notes,
                    coalesce(sum((select count(*) from scanwire.vulns where service_id = next.service_id)), 0)::integer as vulns
                from next where removed
            ), told as (
                update scanwire.staged_hosts set services_removed = services_removed - services, notes_removed = notes_removed - notes,
                    vulns_removed = vulns_removed - vulns
                from counted where workspace_id = ${workspaceOf('$1')} and host_id = $1 and services > 0
            ), removed as (
                delete from scanwire.services where id = ${ofNext('service_id', 'removed')}
            ) ${endOf('service_id')}`,
        ],
        end: `update scanwire.staged_hosts set services_removed = 0 where workspace_id = ${workspaceOf('$1')} and host_id = $1`,
    },
];

/** What is removed below a host that stays, triggers take from its counts; of what was removed in pieces before nothing is left to see but the time. */
const APPLY = `with ${nextStaged(STAGED_CROWDS)}, changed as (
    update scanwire.hosts
    set updated_at = slice.updated_at, service_count = hosts.service_count + slice.services_added,
        note_count = hosts.note_count + slice.notes_added, vuln_count = hosts.vuln_count + slice.vulns_added, ${assignments('slice.fields')}
    from slice where ${isIn('hosts.id', 'slice.host_id')} and (slice.fields <> '{}' or greatest(services_added, services_removed,
        notes_added, notes_removed, vulns_added, vulns_removed) > 0 or slice.updated_at > hosts.updated_at)
), services_slice as (
    delete from scanwire.staged_services where host_id = ${hostsOfSlice()} returning *
), services_changed as (
    update scanwire.services set ${SERVICE_COLUMNS}
    from services_slice staged where ${isIn('services.id', 'staged.service_id')} and not staged.removed
), services_removed as (
    delete from scanwire.services where id = any (array(select service_id from services_slice where removed))
), ${APPLY_FINDINGS}
select max(host_id) as last, count(*)::integer as count, (select id from crowd) as crowd from slice`;

const END_APPLIED = 'update scanwire.workspaces set staged_shown = false, import_id = null, import_until = null where id = $1';

interface Applying {
    readonly onHosts?: ((count: number) => void) | undefined;
    /** Ends the import in its workspace `$1`, in another way than by leaving that to others. */
    readonly end?: string | undefined;
}

/** Moves what lies over rows that are shown into them, and ends the import. Whoever reads meanwhile sees no difference. */
export async function applyStaged(pool: PoolLike, lease: Lease, { onHosts, end = END_APPLIED }: Applying = {}): Promise<void> {
    await everySlice(pool, lease, REMOVE_GONE, { onHosts, crowds: GONE_CROWDS });
    await everySlice(pool, lease, APPLY, { onHosts, crowds: STAGED_CROWDS });
    await slice(pool, lease, (client) => client.query(end, [lease.workspaceId]));
}

const DISCARDED_CROWDS: readonly Crowd[] = [
    ...DISCARDED_FINDINGS,
    FORGOTTEN_SERVICES,
    {
        ...deleted(
            'services',
            (host) => `from scanwire.services where host_id = ${host} and ${isAside(host, 'services_added > 0')}`,
            `rows.generation > ${shownGeneration('$1')}`,
        ),
        end: `update scanwire.staged_hosts set services_added = 0 where workspace_id = ${workspaceOf('$1')} and host_id = $1`,
    },
];

const DISCARD_STAGED = `with ${nextStaged(DISCARDED_CROWDS)}, services_slice as (
    delete from scanwire.staged_services where host_id = ${hostsOfSlice()}
), services_created as (
    delete from scanwire.services where host_id = ${hostsOfSlice('services_added > 0')}
        and generation > (select greatest(generation, 0) from scanwire.workspaces where id = $1)
), ${DISCARD_FINDINGS}
select max(host_id) as last, count(*)::integer as count, (select id from crowd) as crowd from slice`;

/** What is of generation 0 comes from others, also in a workspace that was made for the import and not shown. */
const DISCARD_HOSTS = `with ${upToCrowd(
    `select hosts.id, ${ROWS_BELOW} as below from scanwire.hosts join scanwire.workspaces on workspaces.id = hosts.workspace_id
        where workspace_id = $1 and hosts.id > greatest($2, hosts_until)
            and hosts.generation > greatest(workspaces.generation, 0)
        order by hosts.id limit $3`,
    BELOW_HOSTS,
)}, slice as (
    delete from scanwire.hosts where id = any (array(select id from fitting)) returning id
)
select max(id) as last, count(*)::integer as count, (select id from crowd) as crowd from slice`;

const FORGET_UNSHOWN = 'delete from scanwire.remembered_imports where workspace_id = $1 and counts is null';

/** The workspace that was made for the import and not shown goes with it, unless others have stored hosts there. */
const REMOVE_EMPTY = `delete from scanwire.workspaces
    where id = $1 and generation < 0 and not exists (select from scanwire.hosts where workspace_id = $1)`;
const END_DISCARDED = `update scanwire.workspaces
    set generation = greatest(generation, 0), hosts_until = null, import_id = null, import_until = null where id = $1`;

/**
 * Removes all that was staged and not shown, the workspace too where it was made for it, and ends the import.
 *
 * @param onHosts Told how many of the hosts are done that have something laid aside, then of those that are new, then of all others.
 */
export async function discardStaged(pool: PoolLike, lease: Lease, onHosts: (count: number) => void = () => {}): Promise<void> {
    await everySlice(pool, lease, DISCARD_STAGED, { onHosts, crowds: DISCARDED_CROWDS });
    await everySlice(pool, lease, DISCARD_HOSTS, { onHosts, crowds: BELOW_HOSTS });
    await everySlice(pool, lease, UNSEE, { onHosts });
    await everySlice(pool, lease, FORGET_NAMED, { crowds: NAMED });
    await slice(pool, lease, async (client) => {
        await client.query(FORGET_UNSHOWN, [lease.workspaceId]);
        await client.query(REMOVE_EMPTY, [lease.workspaceId]);
        await client.query(END_DISCARDED, [lease.workspaceId]);
    });
}

/** Discards what was staged, or leaves that to whoever writes next. */
export async function discardOrLeave(pool: PoolLike, lease: Lease, onHosts?: (count: number) => void): Promise<void> {
    try {
        await discardStaged(pool, lease, onHosts);
    } catch (error) {
        const left = release(pool, lease);
        if (isSilence(error)) {
            // Nobody waits for more of it.
            left.catch(() => {});
            throw error;
        }

        await left;
    }
}

/** Shows what was staged, or takes it back where that fails. A commit whose answer is lost may have shown it all the same. */
export async function showOrDiscard(
    pool: PoolLike,
    held: Lease,
    generation: number,
    also: (client: Executor) => Promise<void> = async () => {},
): Promise<void> {
    try {
        await show(pool, held, generation, also);
    } catch (error) {
        const shown = await isShown(pool, held).catch((failure: unknown) => {
            if (isSilence(failure)) {
                noteSilence(error);
            }
            return null;
        });
        if (shown === false) {
            await clearedUp([() => discardOrLeave(pool, held)], error);
        }

        if (shown !== true) {
            throw error;
        }
    }
}

/**
 * Ends an import that has died: what it had shown is moved into place, what it had not is removed. Nothing is done where it is alive, or
 * somebody else ends it.
 */
export async function endDeadImport(pool: PoolLike, { workspaceId, importId }: Lease): Promise<void> {
    const own = { workspaceId, importId: crypto.randomUUID() };
    const take = (client: Executor) =>
        client.query<{ staged_shown: boolean }>(
            `update scanwire.workspaces set import_id = $3, import_until = scanwire.now() + ${LEASE}
             where id = $1 and import_id = $2 and import_until < scanwire.now() returning staged_shown`,
            [workspaceId, importId, own.importId],
        );
    const { rows } = await transaction(pool, take, IMPATIENT_OF_SILENCE);
    if (rows[0] !== undefined) {
        await (rows[0].staged_shown ? applyStaged(pool, own) : discardStaged(pool, own));
    }
}
