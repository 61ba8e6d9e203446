import { byHostField } from '../../../lib/inventory/host.ts';
import { prepared } from '../prepared.ts';
import { isIn } from './crowded-hosts.ts';
import { CLOSED_APART, givenServices, INPUT } from './import-batches.ts';
import { SEE } from './sightings.ts';
import { SERVICE_DIFFERS, SHOWN_SERVICE, SOMETHING_STAGED } from './stage-services.ts';
import { COUNTED, type Counted, verdict } from './verdicts.ts';

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

/**
 * Hosts that are shown get what changes in them laid aside; those that are not, for example of a batch before, are changed at once. Looks for
 * the first service that differs, too: where there is none, which is most of what is scanned every day, nothing is left to do for services. Those of new
 * hosts are only counted.
 */
export const STAGE_HOSTS: string = prepared(`with ${INPUT}, ${CLOSED_APART}, judged as materialized (
    select given.*, ${verdict({
        isNew: 'given.host_id is null',
        differs: HOST_DIFFERS,
        gone: `given.fields ->> 'state' = 'down' and ${SHOWN_HOST.get('state')} <> 'down'`,
    })}
    from (
        select index, address, host_id, generation, updated_at, coalesce(json_array_length(services), 0) as services, notes, vulns, fields::jsonb as fields
        from input offset 0
    ) given
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
    update scanwire.hosts set ${assignments('different.fields')} from different where ${isIn('hosts.id', 'different.host_id')} and different.generation = $5
), created as (
    insert into scanwire.hosts (workspace_id, generation, created_at, updated_at, service_count, note_count, vuln_count, address,
        ${givenFields('fields')
            .map(([column]) => column)
            .join(', ')})
    select $3, $5, $7, $7, services, notes, vulns, address, ${givenFields('fields')
        .map(([, value]) => value)
        .join(', ')}
    from judged where host_id is null order by index
    returning id, state
), ${SEE}
select ${COUNTED}, (select min(id) from created) as first, array_agg(host_id) filter (where verdict = 'unchanged') as kept,
    coalesce(sum(services), 0)::integer as services,
    exists (select from judged where host_id is null and services > 0) or exists (
        select from ${givenServices('input.host_id is not null', 'array(select index from apart)')} given
        left join lateral ${SHOWN_SERVICE} known on true
        where ${SERVICE_DIFFERS}
    ) as differs, array(select index from apart order by index) as apart
from judged`);

/** What the hosts of a batch have come to. */
export interface StagedHosts extends Counted {
    /** The smallest id that was given to a new one. */
    readonly first: number | null;
    /** Ids of the unchanged ones. */
    readonly kept: readonly number[] | null;
    /** How many services they have. */
    readonly services: number;
    /** Whether one of these is new or differs. */
    readonly differs: boolean;
    /** The indexes, from 1, of those of whose services some are closed with others, and which are staged apart. */
    readonly apart: readonly number[];
}
