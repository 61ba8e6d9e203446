import { MAX_ID } from '../../../lib/inventory/fields.ts';
import { byHostField } from '../../../lib/inventory/host.ts';
import { addCounts, type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { PoolLike } from '../database.ts';
import { COUNTED, GIVEN_SERVICES, INPUT, NAME, noteTouched } from './import-input.ts';
import { type Lease, type Pace, slice } from './import-slices.ts';
import { SEE } from './sightings.ts';
import { NO_FINDINGS, stageFindings } from './stage-findings.ts';

/** Each field of a host that an import gives, and how it is read from `source`, a JSON object. */
function givenFields(source: string): readonly (readonly [column: string, value: string])[] {
    const text = (field: string): string => `coalesce(${source} ->> '${field}', '')`;
    return Object.entries(
        byHostField({
            name: text,
            text,
            nullableText: (field) => `${source} ->> '${field}'`,
            state: (field) => `coalesce(${source} ->> '${field}', 'alive')`,
            foreignId: (field) => `(${source} ->> '${field}')::integer`,
        }),
    );
}

/** The columns of a host with what a JSON object of fields lays over them. */
export function overlaid(source: string, table: string): ReadonlyMap<string, string> {
    const lay = (column: string, value: string): string =>
        `case when ${source} -> '${column}' is null then ${table}.${column} else ${value} end`;
    return new Map(givenFields(source).map(([column, value]) => [column, lay(column, value)]));
}

/** Sets the columns of `scanwire.hosts` that a JSON object of fields gives. */
export function assignments(source: string): string {
    return [...overlaid(source, 'hosts')].map(([column, value]) => `${column} = ${value}`).join(', ');
}

const SHOWN_HOST = overlaid('staged.fields', 'hosts');

/** Whether a host is shown otherwise than `given.fields` say: as it is, with what a batch before has laid over it. */
const HOST_DIFFERS = givenFields('given.fields')
    .map(([column, value]) => {
        const shown = (text: string | undefined): string =>
            column === 'name' ? `coalesce(nullif(${text}, ''), host(hosts.address))` : `${text}`;
        return `given.fields -> '${column}' is not null and ${shown(value)} is distinct from ${shown(SHOWN_HOST.get(column))}`;
    })
    .join(' or ');

/** Asked once, and not for every row: a file that brings nothing new stages nothing. */
const SOMETHING_STAGED = '(select exists (select from scanwire.staged_hosts where workspace_id = $3))';

/** What was there and is told to be there no more is gone. */
function verdict(row: { readonly isNew: string; readonly differs: string; readonly gone: string }): string {
    return `case when ${row.isNew} then 'new' when not (${row.differs}) then 'unchanged' when ${row.gone} then 'gone' else 'changed' end as verdict`;
}

const DISTINCT_SERVICES = `(
    select count(distinct ((service ->> 'port')::integer, service ->> 'proto'))
    from json_array_elements(coalesce(input.host -> 'services', '[]')) service
)`;

/** A host as it is read aside has their numbers. */
const NEW_FINDINGS = `coalesce((input.host ->> 'notes')::integer, 0), coalesce((input.host ->> 'vulns')::integer, 0)`;

/** A service as it is shown, with what a batch before has laid over it. */
const SHOWN_SERVICE = `(
    select services.id, services.generation, coalesce(staged.state, services.state) as state, coalesce(staged.name, services.name) as name,
        case when staged.service_id is null then services.info else staged.info end as info
    from scanwire.services
    left join lateral (
        select * from scanwire.staged_services where ${SOMETHING_STAGED} and host_id = services.host_id and service_id = services.id offset 0
    ) staged on true
    where services.host_id = given.host_id and port = given.port and proto = given.proto offset 0
)`;

/** Whether one is new, or shown otherwise. */
const SERVICE_DIFFERS = `known.id is null
    or given.state is distinct from known.state
    or named and (given.name, given.info) is distinct from (known.name, known.info)`;

/**
 * Hosts that are shown get what changes in them laid aside; those that are not, for example of a batch before, are changed at once. Looks for
 * the first service that differs, too: where there is none, which is most of what is scanned every day, nothing is left to do for services.
 */
const STAGE_HOSTS = `with ${INPUT}, judged as materialized (
    select given.*, ${verdict({
        isNew: 'given.host_id is null',
        differs: HOST_DIFFERS,
        gone: `given.fields ->> 'state' = 'down' and ${SHOWN_HOST.get('state')} <> 'down'`,
    })}
    from (select host_id, generation, host::jsonb - '{services,address,closed,if_known,notes,vulns}'::text[] as fields from input offset 0) given
    left join scanwire.hosts on hosts.id = given.host_id
    left join lateral (
        select fields from scanwire.staged_hosts where ${SOMETHING_STAGED} and workspace_id = $3 and host_id = given.host_id offset 0
    ) staged on true
), different as (
    select * from judged where verdict in ('changed', 'gone')
), staged as (
    insert into scanwire.staged_hosts as staged (workspace_id, host_id, updated_at, fields)
    select $3, host_id, $7, fields from different where generation < $5
    on conflict (workspace_id, host_id) do update set updated_at = excluded.updated_at, fields = staged.fields || excluded.fields
), changed as (
    update scanwire.hosts set ${assignments('different.fields')} from different where hosts.id = different.host_id and different.generation = $5
), created as (
    insert into scanwire.hosts (workspace_id, generation, created_at, updated_at, service_count, note_count, vuln_count, address,
        ${givenFields('input.host')
            .map(([column]) => column)
            .join(', ')})
    select $3, $5, $7, $7, ${DISTINCT_SERVICES}, ${NEW_FINDINGS}, address, ${givenFields('input.host')
        .map(([, value]) => value)
        .join(', ')}
    from input where host_id is null order by index
    returning id, state
), ${SEE}
select ${COUNTED}, (select min(id) from created) as first, array_agg(host_id) filter (where verdict = 'unchanged') as kept,
    (select coalesce(sum(json_array_length(coalesce(host -> 'services', '[]'))), 0)::integer from input) as services,
    exists (
        select from input
        cross join lateral (select input.host_id, element.* from ${GIVEN_SERVICES} offset 0) given
        left join lateral ${SHOWN_SERVICE} known on true
        where ${SERVICE_DIFFERS}
    ) as differs
from judged`;

/** The last of several services of one port is the one that counts. */
const STAGE_SERVICES = `with ${INPUT}, given as (
    select distinct on (host_id, port, proto) host_id, input.generation as host_generation, input.updated_at as host_updated_at,
        element.*, input.index as host_index
    from input cross join lateral ${GIVEN_SERVICES}
    order by host_id, port, proto, element.index desc
), judged as materialized (
    select host_id, host_generation, host_updated_at, port, proto, given.state, host_index, index, known.id as service_id, known.generation,
        case when named then given.name else coalesce(known.name, '') end as name,
        case when named then given.info else known.info end as info, ${verdict({
            isNew: 'known.id is null',
            differs: SERVICE_DIFFERS,
            gone: `given.state = 'closed' and known.state <> 'closed'`,
        })}
    from given left join lateral ${SHOWN_SERVICE} known on true
    where told or known.state <> 'closed'
), different as (
    select * from judged where verdict in ('changed', 'gone')
), staged as (
    insert into scanwire.staged_services (host_id, service_id, updated_at, state, name, info)
    select host_id, service_id, $7, state, name, info from different where generation < $5
    on conflict (host_id, service_id) do update set state = excluded.state, name = excluded.name, info = excluded.info
), changed as (
    update scanwire.services set state = different.state, name = different.name, info = different.info
    from different where services.id = different.service_id and different.generation = $5
), created as (
    insert into scanwire.services (generation, host_id, created_at, updated_at, port, proto, state, name, info)
    select $5, host_id, $7, $7, port, proto, state, name, info from judged where verdict = 'new' order by host_index, index
), ${noteTouched('service', false)}
select ${COUNTED}, array(select host_id from touched where added > 0) as grown, array(select host_id from touched) as touched from judged`;

/** What a batch that was read aside brings. */
export interface Batch {
    readonly seq: number;
    /** Its number of hosts. */
    readonly size: number;
    /** The generation that the import gives the workspace. */
    readonly generation: number;
    readonly at: Date;
    /** Whether what it names is noted, since all else is going to be removed. */
    readonly replace: boolean;
    /** Whether it has notes or vulnerabilities. */
    readonly hasFindings: boolean;
}

/** What became of a batch. */
export interface StagedBatch {
    readonly hosts: ImportCounts;
    readonly services: ImportCounts;
    readonly notes: ImportCounts;
    readonly vulns: ImportCounts;
    /** How many hosts have something laid aside. */
    readonly aside: number;
    /** How many hosts were noted as named. */
    readonly named: number;
}

/** Stores a batch, slice by slice, where nobody sees it yet, and removes it from where it was read aside. */
export async function stageBatch(pool: PoolLike, lease: Lease, batch: Batch, pace: Pace): Promise<StagedBatch> {
    let sum: StagedBatch = NOTHING_STAGED;
    for (let from = 0; from < batch.size; ) {
        const until = Math.min(from + pace.hosts(), batch.size);
        sum = addStaged(sum, await stageSlice(pool, lease, batch, { from, until, pace }));
        from = until;
    }
    return sum;
}

/** Before anything is staged. */
export const NOTHING_STAGED: StagedBatch = {
    hosts: importCounts(),
    services: importCounts(),
    notes: importCounts(),
    vulns: importCounts(),
    aside: 0,
    named: 0,
};

/** Of both together. */
export function addStaged(one: StagedBatch, other: StagedBatch): StagedBatch {
    return {
        hosts: addCounts(one.hosts, other.hosts),
        services: addCounts(one.services, other.services),
        notes: addCounts(one.notes, other.notes),
        vulns: addCounts(one.vulns, other.vulns),
        aside: one.aside + other.aside,
        named: one.named + other.named,
    };
}

type Counted = Omit<ImportCounts, 'refused'>;

interface StagedHosts extends Counted {
    /** The smallest id that was given to a new one. */
    readonly first: number | null;
    /** Ids of the unchanged ones. */
    readonly kept: readonly number[] | null;
    /** How many services they have. */
    readonly services: number;
    /** Whether one of these is new or differs. */
    readonly differs: boolean;
}

interface StagedServices extends Counted {
    /** Ids of hosts that were there before and have more of them now. */
    readonly grown: readonly number[];
    /** Ids of those that have new or other ones. */
    readonly touched: readonly number[];
}

async function stageSlice(
    pool: PoolLike,
    lease: Lease,
    { seq, size, generation, at, replace, hasFindings }: Batch,
    { from, until, pace }: { readonly from: number; readonly until: number; readonly pace: Pace },
): Promise<StagedBatch> {
    const named = [lease.importId, seq, lease.workspaceId, from, generation, until];
    const values = [...named, at];
    const work = async (client: Executor): Promise<StagedBatch> => {
        const [hosts] = (await client.query<StagedHosts>(STAGE_HOSTS, values)).rows;
        const more = [...values, hosts?.first ?? MAX_ID];
        const [services] = hosts?.differs ? (await client.query<StagedServices>(STAGE_SERVICES, more)).rows : [];
        const { grown, touched, ...findings } = hasFindings ? await stageFindings(client, [...more, replace]) : NO_FINDINGS;
        const [noted] = replace ? (await client.query<{ named: number }>(NAME, named)).rows : [];
        if (until === size) {
            await client.query('delete from scanwire.import_batches where import_id = $1 and seq = $2', [lease.importId, seq]);
        }

        const kept = new Set(hosts?.kept);
        const ofKept = (ids: readonly number[]): number => new Set(ids.filter((id) => kept.has(id))).size;
        const enlarged = ofKept([...(services?.grown ?? []), ...grown]);
        const counts = importCounts(hosts);
        return {
            hosts: addCounts(counts, importCounts({ changed: enlarged, unchanged: -enlarged })),
            services: importCounts(services ?? { unchanged: hosts?.services ?? 0 }),
            ...findings,
            aside: counts.changed + counts.gone + ofKept([...(services?.touched ?? []), ...touched]),
            named: noted?.named ?? 0,
        };
    };
    return await slice(pool, lease, (client) => pace.timed(until - from, () => work(client)));
}
