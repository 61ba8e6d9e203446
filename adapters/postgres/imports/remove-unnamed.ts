import { ScanwireError } from '../../../lib/errors.ts';
import { type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { PoolLike } from '../database.ts';
import { type Crowd, deleted, upToCrowd, workspaceOf } from './crowded-hosts.ts';
import { GIVEN_SERVICES, INPUT, serviceOf } from './import-batches.ts';
import type { Lease } from './import-lease.ts';
import { everySlice } from './import-slices.ts';
import { FINDINGS } from './stage-findings.ts';

/**
 * Parts of {@link MARK} for the notes and vulnerabilities of the hosts that are `judged`: marks those that imports have made and this one has not named, but for
 * those that go with a service or with their host.
 */
const MARK_FINDINGS = FINDINGS.map(({ name, kind }) => {
    const isNamed = (what: string, id: string): string => `exists (
        select from scanwire.import_named named
        where workspace_id = $1 and named.host_id = rows.host_id and named.kind = '${what}' and named.service_id = ${id} offset 0
    )`;
    return `${name}_unnamed as materialized (
        select rows.id, rows.host_id from judged join scanwire.${name} rows on rows.host_id = judged.id
        where not judged.removed and rows.generation > 0 and rows.generation < $4 and not ${isNamed(kind, 'rows.id')}
            and (rows.service_id is null or ${isNamed('service', 'rows.service_id')})
    ), ${name}_marked as (
        update scanwire.${name} rows set staged = '{"removed": true}' from ${name}_unnamed where rows.id = ${name}_unnamed.id
    )`;
}).join(', ');

/**
 * Marks what was not named, and forgets what was. A host that stays and loses something counts as changed where nothing else of it does; it is
 * marked with what it loses.
 */
const MARK = `with slice as materialized (
    select id from scanwire.hosts where workspace_id = $1 and id > $2 and generation < $4 order by id limit $3
), judged as materialized (
    select id, not exists (
        select from scanwire.import_named where workspace_id = $1 and host_id = slice.id and service_id = 0
    ) as removed
    from slice
), lost as materialized (
    select services.id, services.host_id,
        (select count(*)::integer from scanwire.notes where service_id = services.id) as notes,
        (select count(*)::integer from scanwire.vulns where service_id = services.id) as vulns
    from judged join scanwire.services on services.host_id = judged.id
    where services.generation < $4 and not exists (
        select from scanwire.import_named named
        where workspace_id = $1 and named.host_id = services.host_id and named.kind = 'service' and named.service_id = services.id offset 0
    )
), ${MARK_FINDINGS}, forgotten as (
    delete from scanwire.import_named using slice where workspace_id = $1 and host_id = slice.id
), services_marked as (
    insert into scanwire.staged_services (host_id, service_id, updated_at, state, name, removed)
    select host_id, id, $5, 'closed', '', true from lost
), counted as materialized (
    select judged.id, judged.removed, services, notes + notes_unnamed as notes, vulns + vulns_unnamed as vulns,
        notes_unnamed + vulns_unnamed > 0 as findings, staged.host_id is null as is_first,
        coalesce(staged.fields <> '{}' or greatest(services_added, notes_added, vulns_added) > 0, false) as has_changed
    from judged
    cross join lateral (
        select count(*)::integer as services, coalesce(sum(notes), 0)::integer as notes, coalesce(sum(vulns), 0)::integer as vulns,
            (select count(*)::integer from notes_unnamed where host_id = judged.id) as notes_unnamed,
            (select count(*)::integer from vulns_unnamed where host_id = judged.id) as vulns_unnamed
        from lost where lost.host_id = judged.id and not judged.removed
    ) losses
    left join scanwire.staged_hosts staged on staged.workspace_id = $1 and staged.host_id = judged.id
), with_hosts as materialized (
    select (select count(*)::integer from judged join lost on lost.host_id = judged.id where removed) as services,
        (select count(*)::integer from judged join scanwire.notes on notes.host_id = judged.id where removed) as notes,
        (select count(*)::integer from judged join scanwire.vulns on vulns.host_id = judged.id where removed) as vulns
), marked as (
    insert into scanwire.staged_hosts as staged
        (workspace_id, host_id, updated_at, fields, removed, services_removed, notes_removed, vulns_removed, findings)
    select $1, id, $5, '{}', removed, services, notes, vulns, findings from counted where removed or services + notes + vulns > 0
    on conflict (workspace_id, host_id) do update set updated_at = excluded.updated_at, services_removed = excluded.services_removed,
        notes_removed = excluded.notes_removed, vulns_removed = excluded.vulns_removed, findings = staged.findings or excluded.findings
)
select max(id) as last, count(*)::integer as count,
    (count(*) filter (where not removed))::integer as named,
    (count(*) filter (where removed))::integer as hosts,
    (coalesce(sum(services), 0) + (select services from with_hosts))::integer as services,
    (coalesce(sum(notes), 0) + (select notes from with_hosts))::integer as notes,
    (coalesce(sum(vulns), 0) + (select vulns from with_hosts))::integer as vulns,
    (count(*) filter (where not removed and services + notes + vulns > 0 and not has_changed))::integer as shrunk,
    (count(*) filter (where is_first and (removed or services + notes + vulns > 0)))::integer as aside
from counted`;

/** Of a workspace in which an import replaces. */
interface Replacement {
    /** That of the import. */
    readonly generation: number;
    readonly at: Date;
    /** How many hosts were noted as named. */
    readonly named: number;
    /** Told of the hosts that are done, slice by slice. */
    readonly onHosts: (count: number) => void;
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

/**
 * Marks all that an import has not named, so that it is gone when the import is shown.
 *
 * @throws ScanwireError `CONFLICT` when not all is there any more that was noted as named: nothing may be taken for gone then.
 */
export async function markUnnamed(pool: PoolLike, lease: Lease, { generation, at, named, onHosts }: Replacement): Promise<Removed> {
    const sum: Marked = { named: 0, hosts: 0, services: 0, notes: 0, vulns: 0, shrunk: 0, aside: 0 };
    await everySlice<Marked>(pool, lease, MARK, {
        values: [generation, at],
        onHosts(count, row) {
            onHosts(count);
            for (const key of Object.keys(sum) as (keyof Marked)[]) {
                sum[key] += row[key];
            }
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

/** What an import that replaces has named. */
export const NAMED: readonly Crowd[] = [
    deleted('import_named', 'ctid', (host) => `workspace_id = ${workspaceOf(host)} and host_id = ${host}`),
];

/** Forgets which rows an import that replaces has named, where it has not come to its end. */
export const FORGET_NAMED: string = `with ${upToCrowd(
    'select distinct host_id as id from scanwire.import_named where workspace_id = $1 and host_id > $2 order by host_id limit $3',
    NAMED,
)}, forgotten as (
    delete from scanwire.import_named named using fitting where named.workspace_id = $1 and named.host_id = fitting.id
)
select max(id) as last, count(*)::integer as count, (select id from crowd) as crowd from fitting`;

/** Notes which of the hosts and services that are shown a batch names, whatever it says of them. Has the first parameters of the batch. */
export const NOTE_NAMED: string = `with ${INPUT}, named as (
    insert into scanwire.import_named (workspace_id, host_id, service_id)
    select $3, host_id, 0 from input where generation < $5
    union
    select $3, input.host_id, services.id
    from input cross join lateral ${GIVEN_SERVICES}
    cross join lateral ${serviceOf('input', 'element')} services
    where input.generation < $5 and services.generation < $5
    on conflict do nothing returning service_id
)
select (count(*) filter (where service_id = 0))::integer as named from named`;
