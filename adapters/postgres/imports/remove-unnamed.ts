import { ScanwireError } from '../../../lib/errors.ts';
import type { Findings } from '../../../lib/inventory/findings.ts';
import { type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { PoolLike } from '../database.ts';
import { prepared } from '../prepared.ts';
import { type Crowd, endOf, MOST, nextBelow, nextKeys, ofNext, ROWS_BELOW, upToCrowd, workspaceOf } from './crowded-hosts.ts';
import { closedBetween, givenServices, INPUT, serviceOf } from './import-batches.ts';
import type { Lease } from './import-lease.ts';
import { everySlice, slice, thinOut } from './import-slices.ts';
import { FINDINGS } from './stage-findings.ts';

type Table = 'services' | keyof Findings;

/**
 * The rows of a table below those hosts that are `judged`, in their place in a join: all, host by host whatever the planner believes, or those of `next`, of which
 * those of the other tables are none.
 */
function below(table: Table, part: Table | undefined): string {
    return part === table
        ? 'next rows on true'
        : `lateral (select * from scanwire.${table} where ${part === undefined} and host_id = judged.id offset 0) rows on true`;
}

/**
 * Parts of {@link marking} for the notes and vulnerabilities of the hosts that are `judged`: marks those that imports have made and this one has not named, but for
 * those that go with a service or with their host.
 */
function markingFindings(part: Table | undefined): string {
    return FINDINGS.map(({ name, kind }) => {
        const isNamed = (what: string, id: string): string => `exists (
            select from scanwire.import_named named
            where workspace_id = $1 and named.host_id = rows.host_id and named.kind = '${what}' and named.service_id = ${id} offset 0
        )`;
        return `${name}_unnamed as materialized (
            select rows.id, rows.host_id from judged join ${below(name, part)}
            where not judged.removed and rows.generation > 0 and rows.generation < $4 and not ${isNamed(kind, 'rows.id')}
                and (rows.service_id is null or ${isNamed('service', 'rows.service_id')})
        ), ${name}_marked as (
            update scanwire.${name} rows set staged = '{"removed": true}' where rows.id = any (array(select id from ${name}_unnamed))
        )`;
    }).join(', ');
}

/** How many of `next`, below a crowded host whose services were marked before, go with a service that goes. Each of those may have more than a slice takes. */
const LOST_WITH_SERVICES = `(select count(*)::integer from next where exists (
    select from scanwire.staged_services service where service.host_id = $2 and service.service_id = next.service_id and removed offset 0
))`;

/**
 * Marks what was not named below the hosts of `slice`. A host that stays and loses something counts as changed where nothing else of it does; it is marked with
 * what it loses.
 *
 * @param slice Parts of the statement, with `slice` among them.
 * @param part The only table of which `next` has rows; all below the hosts is looked through where it is not given.
 */
function marking(slice: string, part?: Table): string {
    return `with ${slice}, judged as materialized (
    select id, not exists (
        select from scanwire.import_named where workspace_id = $1 and host_id = slice.id and kind = 'service' and service_id = 0 offset 0
    ) as removed
    from slice
), lost as materialized (
    select rows.id, rows.host_id,
        ${part === undefined ? FINDINGS.map(({ name }) => `(select count(*)::integer from scanwire.${name} where service_id = rows.id) as ${name}`) : '0 as notes, 0 as vulns'}
    from judged join ${below('services', part)}
    where rows.generation < $4 and not exists (
        select from scanwire.import_named named
        where workspace_id = $1 and named.host_id = rows.host_id and named.kind = 'service' and named.service_id = rows.id offset 0
    )
), ${markingFindings(part)}, services_marked as (
    insert into scanwire.staged_services (host_id, service_id, updated_at, state, name, removed)
    select host_id, id, $5, 'closed', '', true from lost
), counted as materialized (
    select judged.id, judged.removed, services, notes + notes_unnamed + notes_lost as notes, vulns + vulns_unnamed + vulns_lost as vulns,
        notes_unnamed + vulns_unnamed > 0 as findings, staged.host_id is null as is_first,
        coalesce(staged.fields <> '{}' or greatest(services_added, notes_added, vulns_added) > 0, false) as has_changed
    from judged
    cross join lateral (
        select count(*)::integer as services, coalesce(sum(notes), 0)::integer as notes, coalesce(sum(vulns), 0)::integer as vulns,
            (select count(*)::integer from notes_unnamed where host_id = judged.id) as notes_unnamed,
            (select count(*)::integer from vulns_unnamed where host_id = judged.id) as vulns_unnamed,
            ${FINDINGS.map(({ name }) => `${part === name ? LOST_WITH_SERVICES : 0} as ${name}_lost`).join(', ')}
        from lost where lost.host_id = judged.id and not judged.removed
    ) losses
    left join scanwire.staged_hosts staged on staged.workspace_id = $1 and staged.host_id = judged.id
), with_hosts as materialized (
    select (select count(*)::integer from judged join lost on lost.host_id = judged.id where removed) as services,
        (select count(*)::integer from judged join ${below('notes', part)} where removed) as notes,
        (select count(*)::integer from judged join ${below('vulns', part)} where removed) as vulns
), marked as (
    insert into scanwire.staged_hosts as staged
        (workspace_id, host_id, updated_at, fields, removed, services_removed, notes_removed, vulns_removed, findings)
    select $1, id, $5, '{}', removed, services, notes, vulns, findings from counted where removed or services + notes + vulns > 0
    on conflict (workspace_id, host_id) do update set updated_at = excluded.updated_at,
        services_removed = staged.services_removed + excluded.services_removed, notes_removed = staged.notes_removed + excluded.notes_removed,
        vulns_removed = staged.vulns_removed + excluded.vulns_removed, findings = staged.findings or excluded.findings
)
select (count(*) filter (where not removed))::integer as named,
    (count(*) filter (where removed))::integer as hosts,
    (coalesce(sum(services), 0) + (select services from with_hosts))::integer as services,
    (coalesce(sum(notes), 0) + (select notes from with_hosts))::integer as notes,
    (coalesce(sum(vulns), 0) + (select vulns from with_hosts))::integer as vulns,
    (count(*) filter (where not removed and services + notes + vulns > 0 and not has_changed))::integer as shrunk,
    (count(*) filter (where is_first and (removed or services + notes + vulns > 0)))::integer as aside,
    ${part === undefined ? '(select id from crowd) as crowd, max(id) as last, count(*)::integer as count' : '(select max(id) from next) as last, (select count(*)::integer from next) as count'}
from counted`;
}

/** Forgets what an import has named below those hosts. By the order of its key, which no other way to read it serves: for equality the planner may read all that is named. */
function forgetNamed(hosts: string): string {
    const key = 'named.workspace_id, named.host_id';
    return `delete from scanwire.import_named named using ${hosts} where (${key}) >= ($1, ${hosts}.id) and (${key}) <= ($1, ${hosts}.id)`;
}

const TABLES_BELOW: readonly Table[] = ['services', ...FINDINGS.map(({ name }) => name)];
const BELOW: readonly Crowd['rows'][] = TABLES_BELOW.map((table) => (host) => `from scanwire.${table} where host_id = ${host}`);

/** Marks what was not named, and forgets what was. */
const MARK = marking(`${upToCrowd(
    `select id, ${ROWS_BELOW} as below from scanwire.hosts where workspace_id = $1 and id > $2 and generation < $4 order by id limit $3`,
    BELOW.map((rows) => ({ rows, thin: [] })),
)}, slice as materialized (
    select id from fitting
), forgotten as (
    ${forgetNamed('slice')}
)`);

/** The same of a crowded host, table by table, but for what is forgotten. */
const MARK_NEXT = TABLES_BELOW.map((table) =>
    marking(`${nextBelow(table, '$2', '$3')}, slice as materialized (select $2::integer as id)`, table),
);

/** Of a workspace in which an import replaces. */
interface Replacement {
    /** That of the import. */
    readonly generation: number;
    readonly at: Date;
    /** How many hosts were noted as named. */
    readonly named: number;
    /** Told of the hosts that are done, slice by slice, and how many of all have something laid aside only now. */
    readonly onHosts: (count: number, aside: number) => void;
}

/** What an import that replaces removes. */
interface Removed {
    readonly hosts: ImportCounts;
    readonly services: ImportCounts;
    readonly notes: ImportCounts;
    readonly vulns: ImportCounts;
    /** How many hosts have something laid aside only now. */
    readonly aside: number;
}

type Marked = Record<'named' | 'hosts' | 'services' | 'notes' | 'vulns' | 'shrunk' | 'aside', number>;

const NOTHING: Marked = { named: 0, hosts: 0, services: 0, notes: 0, vulns: 0, shrunk: 0, aside: 0 };

function added(one: Marked, other: Marked): Marked {
    const keys = Object.keys(NOTHING) as (keyof Marked)[];
    return Object.fromEntries(keys.map((key) => [key, one[key] + other[key]])) as Marked;
}

/**
 * Marks all that an import has not named, so that it is gone when the import is shown.
 *
 * @throws ScanwireError `CONFLICT` when not all is there any more that was noted as named: nothing may be taken for gone then.
 */
export async function markUnnamed(pool: PoolLike, lease: Lease, { generation, at, named, onHosts }: Replacement): Promise<Removed> {
    let sum = NOTHING;
    await everySlice<Marked>(pool, lease, MARK, {
        values: [generation, at],
        onHosts(count, row) {
            sum = added(sum, row);
            onHosts(count, sum.aside);
        },
        async ofCrowd(host) {
            sum = added(sum, await markCrowd(pool, lease, [host, generation, at]));
            onHosts(1, sum.aside);
        },
    });
    if (sum.named !== named) {
        throw new ScanwireError('CONFLICT', 'The workspace changed while it was replaced, and nothing of it was');
    }

    return {
        hosts: importCounts({ gone: sum.hosts, changed: sum.shrunk, unchanged: -sum.shrunk }),
        services: importCounts({ gone: sum.services }),
        notes: importCounts({ gone: sum.notes }),
        vulns: importCounts({ gone: sum.vulns }),
        aside: sum.aside,
    };
}

/** Of a host with more below it than a slice takes. What it has named is forgotten last: it says what stays. */
async function markCrowd(
    pool: PoolLike,
    lease: Lease,
    [host, generation, at]: readonly [host: number, generation: number, at: Date],
): Promise<Marked> {
    let sum = NOTHING;
    for (const sql of MARK_NEXT) {
        for (let behind: number | null = 0; behind !== null; ) {
            const values: unknown[] = [lease.workspaceId, host, behind, generation, at];
            const work = (client: Executor) => client.query<Marked & { readonly last: number | null; readonly count: number }>(sql, values);
            const [row] = (await slice(pool, lease, work)).rows;
            // Every slice says of the host itself what it is.
            const { named = 0, hosts = 0, shrunk = 0 } = row ?? {};
            sum = { ...added(sum, { ...NOTHING, ...row }), named, hosts, shrunk: Math.max(sum.shrunk, shrunk) };
            behind = row?.count === MOST ? row.last : null;
        }
    }

    await thinOut(pool, lease, host, NAMED);
    await slice(pool, lease, (client) => client.query(FORGET, [lease.workspaceId, host]));
    return sum;
}

const FORGET = 'delete from scanwire.import_named where workspace_id = $1 and host_id = $2';

/** What an import that replaces has named, kind by kind; the host itself is among its services. */
export const NAMED: readonly Crowd[] = ['service', ...FINDINGS.map(({ kind }) => kind)].map((kind) => {
    const own = (host: string): string => `workspace_id = ${workspaceOf(host)} and host_id = ${host} and kind = '${kind}'`;
    return {
        rows: (host) => `from scanwire.import_named where ${own(host)}`,
        thin: [
            `with ${nextKeys('import_named', 'service_id', own('$1'))}, forgotten as (
                delete from scanwire.import_named where ctid = ${ofNext('ctid')}
            ) ${endOf('service_id')}`,
        ],
    };
});

/** Forgets which rows an import that replaces has named, where it has not come to its end. */
export const FORGET_NAMED: string = `with ${upToCrowd(
    `select host_id as id, coalesce(${ROWS_BELOW}, 0) as below from (
        select distinct host_id from scanwire.import_named where workspace_id = $1 and host_id > $2 order by host_id limit $3
    ) named left join scanwire.hosts on hosts.id = host_id`,
    NAMED,
)}, forgotten as (
    ${forgetNamed('fitting')}
)
select max(id) as last, count(*)::integer as count, (select id from crowd) as crowd from fitting`;

/** @param services Those that are given. */
function notingNamed(services: string): string {
    return `with ${INPUT}, named as (
    insert into scanwire.import_named (workspace_id, host_id, service_id)
    select $3, host_id, 0 from input where generation < $5
    union
    select $3, given.host_id, services.id
    from ${services} given
    cross join lateral ${serviceOf('given', 'given')} services
    where given.host_generation < $5 and services.generation < $5
    on conflict do nothing returning service_id
)
select (count(*) filter (where service_id = 0))::integer as named from named`;
}

/**
 * Notes which of the hosts and services that are shown a batch names, whatever it says of them. Has the first parameters of the batch, and of which hosts the
 * services that are closed with others are left to {@link NOTE_CLOSED} (`$7`).
 */
export const NOTE_NAMED: string = prepared(notingNamed(givenServices('input.generation < $5', '$7::integer[]')));

/** The same of services that a host of many says are closed with others, behind the port `$7` and up to `$8`. */
export const NOTE_CLOSED: string = notingNamed(closedBetween('$7', '$8'));
