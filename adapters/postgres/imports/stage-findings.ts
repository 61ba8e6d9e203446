import type { Findings } from '../../../lib/inventory/findings.ts';
import { addCounts, type ImportCounts, importCounts } from '../../../lib/inventory/import-counts.ts';
import type { Executor } from '../../../lib/transaction.ts';
import { prepared } from '../prepared.ts';
import { type Crowd, endOf, hostsOfSlice, isAside, isIn, nextBelow, OF_NEXT, shownGeneration, workspaceOf } from './crowded-hosts.ts';
import { INPUT, serviceOf } from './import-batches.ts';
import { COUNTED, noteTouched } from './verdicts.ts';

/** A column that an import gives: how it is read from `source`, a JSON object, and as which value of JSON it is compared. */
interface Given {
    readonly read: (source: string) => string;
    readonly json: (column: string) => string;
}

const same = (column: string): string => column;
const number: Given['read'] = (source) => `(${source})::text::integer`;

/** Notes and vulnerabilities: by which column, beside their service, they are found again, and which ones an import gives. */
const KINDS = {
    notes: {
        kind: 'note',
        key: 'ntype',
        above: { workspace_id: '$3' },
        columns: {
            data: { read: same, json: same },
            critical: { read: (source) => `nullif(${source}, 'null')::boolean`, json: same },
            seen: { read: (source) => `nullif(${source}, 'null')::boolean`, json: same },
        },
        blanks: { data: `'{}'`, critical: 'null', seen: 'null' },
    },
    vulns: {
        kind: 'vuln',
        key: 'name',
        above: {},
        columns: {
            info: { read: (source) => `${source} #>> '{}'`, json: same },
            exploited_at: {
                read: (source) => `(${source} #>> '{}')::timestamptz`,
                // As JavaScript writes it.
                json: (column) => `to_char(${column} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`,
            },
            vuln_detail_count: { read: number, json: same },
            vuln_attempt_count: { read: number, json: same },
            nexpose_data_vuln_def_id: { read: (source) => number(`nullif(${source}, 'null')`), json: same },
        },
        blanks: { info: 'null', exploited_at: 'null', vuln_detail_count: '0', vuln_attempt_count: '0', nexpose_data_vuln_def_id: 'null' },
    },
} as const satisfies Readonly<Record<keyof Findings, FindingKind>>;

interface FindingKind {
    readonly kind: string;
    readonly key: string;
    readonly above: Readonly<Record<string, string>>;
    readonly columns: Readonly<Record<string, Given>>;
    /** What a new one has where the import says nothing. */
    readonly blanks: Readonly<Record<string, string>>;
}

const NAMES = Object.keys(KINDS) as readonly (keyof Findings)[];

/** The tables of findings, with the names of their kinds in what an import has named. */
export const FINDINGS: readonly { readonly name: keyof Findings; readonly kind: string }[] = NAMES.map((name) => ({
    name,
    kind: KINDS[name].kind,
}));

/** The value of a column of `rows` with what a JSON object lays over it; other columns as they are. */
export function laidOver(name: keyof Findings, column: string, source: string): string {
    const { columns }: FindingKind = KINDS[name];
    const given = column === 'updated_at' ? { read: (value: string) => `(${value} #>> '{}')::timestamptz` } : columns[column];
    const value = given?.read(`(${source} -> '${column}')`);
    return value === undefined ? `rows.${column}` : `case when ${source} -> '${column}' is null then rows.${column} else ${value} end`;
}

/** Sets the columns of `rows` that a JSON object gives. */
function assignments(name: keyof Findings, source: string): string {
    return Object.keys(KINDS[name].columns)
        .map((column) => `${column} = ${laidOver(name, column, source)}`)
        .join(', ');
}

/**
 * Stores the notes, or the vulnerabilities, of a slice of a batch; hosts and services of it are stored. As with services, what is shown has
 * its changes laid aside. Has the parameters of those, and whether what it names is noted (`$9`).
 */
function staging(name: keyof Findings): string {
    const { kind, key, above, columns, blanks }: FindingKind = KINDS[name];
    const own = Object.entries(columns).map(([column, { json }]) => `'${column}', ${json(`rows.${column}`)}`);
    const fresh = Object.entries(columns).map(([column, { read }]) => `coalesce(${read(`(fields -> '${column}')`)}, ${blanks[column]})`);
    return `with ${INPUT}, given as materialized (
        select input.host_id, input.generation as host_generation, input.updated_at as host_updated_at, services.id as service_id, element.*
        from scanwire.import_batches
        cross join lateral rows from (
            json_to_recordset(findings -> '${name}') as (at integer, place integer, port integer, proto text, key text, fields jsonb)
        ) with ordinality as element (at, place, port, proto, key, fields, index)
        join input on input.index = element.at
        left join lateral ${serviceOf('input', 'element')} services on true
        where import_id = $1 and seq = $2
    ), among_alike as materialized (
        select given.*, min(place) over alike as first, count(*) over alike as alike
        from given window alike as (partition by host_id, service_id, key)
    ), looked_up as materialized (
        select among_alike.*, case when place = first then array(
            select id from scanwire.${name} rows
            where (${alikeOf('rows', key)}) >= (${alikeOf('among_alike', 'key')}) and (${alikeOf('rows', key)}) <= (${alikeOf('among_alike', 'key')})
                and rows.${key} is not distinct from among_alike.key and rows.generation > 0
            order by ${alikeOf('rows', key)}, id offset among_alike.first limit among_alike.alike
        ) end as ids
        from among_alike
    ), found as materialized (
        select looked_up.*, (max(ids) over (partition by host_id, service_id, key))[place - first + 1] as found_id from looked_up
    ), judged as materialized (
        select found.*, known.id, known.generation,
            case when known.id is null then 'new' when known.shown || found.fields = known.shown then 'unchanged' else 'changed' end as verdict
        from found left join lateral (
            select id, generation, jsonb_build_object(${own.join(', ')}) || coalesce(staged, '{}') as shown
            from scanwire.${name} rows where id = found.found_id offset 0
        ) known on true
    ), aside as (
        update scanwire.${name} rows
        set staged = coalesce(rows.staged, '{}') || judged.fields || jsonb_build_object('updated_at', $7::timestamptz)
        from judged where ${isIn('rows.id', 'judged.id')} and verdict = 'changed' and judged.generation < $5
    ), changed as (
        update scanwire.${name} rows set ${assignments(name, 'judged.fields')}
        from judged where ${isIn('rows.id', 'judged.id')} and verdict = 'changed' and judged.generation = $5
    ), created as (
        insert into scanwire.${name} (generation, host_id, service_id, created_at, updated_at, ${key},
            ${[...Object.keys(above), ...Object.keys(columns)].join(', ')})
        select $5, host_id, service_id, $7, $7, key, ${[...Object.values(above), ...fresh].join(', ')}
        from judged where verdict = 'new' order by index
    ), named as (
        insert into scanwire.import_named (workspace_id, host_id, kind, service_id)
        select $3, host_id, '${kind}', id from judged where $9 and generation < $5 on conflict do nothing
    ), ${noteTouched(kind, true)}
    select ${COUNTED}, array(select host_id from touched where added > 0) as grown, array(select host_id from touched) as touched from judged`;
}

/** What the index of alike findings has before their ids. They are looked up in its order, as services are: for equality the planner may take another index of the host's. */
function alikeOf(table: string, key: string): string {
    return `${table}.host_id, coalesce(left(${table}.${key}, 200), ''), coalesce(${table}.service_id, 0)`;
}

const STAGE = { notes: prepared(staging('notes')), vulns: prepared(staging('vulns')) };

/** The statements of {@link stageFindings}. */
export const STAGING_FINDINGS: readonly string[] = Object.values(STAGE);

/** What became of the notes and vulnerabilities of a slice. */
interface StagedFindings {
    readonly notes: ImportCounts;
    readonly vulns: ImportCounts;
    /** Ids of hosts that were there before and have more of them now. */
    readonly grown: readonly number[];
    /** Ids of those that have new or other ones. */
    readonly touched: readonly number[];
}

/** Before any is staged. */
export const NO_FINDINGS: StagedFindings = { notes: importCounts(), vulns: importCounts(), grown: [], touched: [] };

interface Staged extends Omit<ImportCounts, 'refused'>, Pick<StagedFindings, 'grown' | 'touched'> {}

/** @param values The parameters of {@link staging}. */
export async function stageFindings(client: Executor, values: readonly unknown[]): Promise<StagedFindings> {
    let sum = NO_FINDINGS;
    for (const name of NAMES) {
        const [row] = (await client.query<Staged>(STAGE[name], [...values])).rows;
        if (row !== undefined) {
            const { grown, touched } = row;
            sum = {
                ...sum,
                [name]: addCounts(sum[name], importCounts(row)),
                grown: [...sum.grown, ...grown],
                touched: [...sum.touched, ...touched],
            };
        }
    }
    return sum;
}

const CHANGED = "rows.staged is not null and not rows.staged ? 'removed'";
const REMOVED = "rows.staged ? 'removed'";

const changes = (name: keyof Findings): string =>
    `updated_at = ${laidOver(name, 'updated_at', 'rows.staged')}, ${assignments(name, 'rows.staged')}, staged = null`;

/** Those of a host for which something is to be done. */
const below =
    (name: keyof Findings, condition: string): Crowd['rows'] =>
    (host) =>
        `from scanwire.${name} where host_id = ${host} and ${isAside(host, condition)}`;

/** Nothing is laid aside any more in the notes and vulnerabilities of the host `$1`, and its slice need not look for any. */
const NO_MORE = `update scanwire.staged_hosts set findings = false where workspace_id = ${workspaceOf('$1')} and host_id = $1`;

function crowdsOf(condition: string, thin: (name: keyof Findings) => readonly string[]): readonly Crowd[] {
    return NAMES.map((name, index) => ({
        rows: below(name, condition),
        thin: thin(name),
        ...(index === NAMES.length - 1 && { end: NO_MORE }),
    }));
}

/**
 * Of a host with more of them than a slice takes, what is laid aside is moved into place before its own. Those of a service that goes go before it: there may be
 * as many.
 */
export const STAGED_FINDINGS: readonly Crowd[] = crowdsOf('(findings or services_removed > 0)', (name) => [
    `with ${nextBelow(name, '$1', '$2')}, judged as materialized (
        select id, coalesce(staged ? 'removed', false) or exists (
            select from scanwire.staged_services service where service.host_id = $1 and service.service_id = next.service_id and removed offset 0
        ) as goes
        from next
    ), told as (
        update scanwire.staged_hosts set ${name}_removed = ${name}_removed - (select count(*)::integer from judged where goes)
        where workspace_id = ${workspaceOf('$1')} and host_id = $1 and exists (select from judged where goes)
    ), changed as (
        update scanwire.${name} rows set ${changes(name)} where rows.id = any (array(select id from judged where not goes)) and ${CHANGED}
    ), removed as (
        delete from scanwire.${name} rows where rows.id = any (array(select id from judged where goes))
    ) ${endOf()}`,
]);

/** The same, to take it back. */
export const DISCARDED_FINDINGS: readonly Crowd[] = crowdsOf('findings', (name) => [
    `with ${nextBelow(name, '$1', '$2')}, created as (
        delete from scanwire.${name} rows where rows.id = ${OF_NEXT} and rows.generation > ${shownGeneration('$1')}
    ), kept as (
        update scanwire.${name} rows set staged = null
        where rows.id = ${OF_NEXT} and rows.staged is not null and rows.generation <= ${shownGeneration('$1')}
    ) ${endOf()}`,
]);

/** Parts of a statement that works on `slice`, hosts with what is laid aside for them: to move it into place. */
export const APPLY_FINDINGS: string = NAMES.map(
    (name) => `${name}_changed as (
        update scanwire.${name} rows set ${changes(name)} where rows.host_id = ${hostsOfSlice('findings')} and ${CHANGED}
    ), ${name}_removed as (
        delete from scanwire.${name} rows where rows.host_id = ${hostsOfSlice('findings')} and ${REMOVED}
    )`,
).join(', ');

/** The same, to take it back. */
export const DISCARD_FINDINGS: string = NAMES.map(
    (name) => `${name}_created as (
        delete from scanwire.${name} rows where rows.host_id = ${hostsOfSlice('findings')}
            and rows.generation > (select greatest(generation, 0) from scanwire.workspaces where id = $1)
    ), ${name}_kept as (
        update scanwire.${name} rows set staged = null where rows.host_id = ${hostsOfSlice('findings')} and rows.staged is not null
            and rows.generation <= (select greatest(generation, 0) from scanwire.workspaces where id = $1)
    )`,
).join(', ');
