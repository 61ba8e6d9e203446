import type { ExtraField, FilterName, Filters, Position, Selection } from '../../../lib/inventory/selection.ts';
import type { CollectionSource } from './collection.ts';
import { areFew, idsByAddress } from './hosts-by-address.ts';

/** Large enough that a round trip does not count, small enough that a batch does not either (see `docs/postgres.md`). */
export const BATCH = 250;

/** What every row that is there for a reader fulfils. */
export function belowOf({ parents, shown = 'true' }: CollectionSource): readonly string[] {
    return [...parents.map((column, index) => `${column} = $${index + 1}`), shown];
}

/** The same while an import lays something over rows. */
export function seenBelow({ kept = 'true', ...source }: CollectionSource): readonly string[] {
    return [...belowOf(source), kept];
}

/** A statement with its values. */
export interface Statement {
    readonly text: string;
    readonly values: unknown[];
}

/** Written so that the planner takes it for likely: of `is null` it thinks that next to no row is so, and sorts all of them. */
const UNTOUCHED = 'case when staged.host_id is null then true else false end';

/** A part of a selection that ends at a place, whether it has as many rows or not. */
export interface Part extends Selection {
    readonly until?: Position | undefined;
}

/** Ids behind one and up to another. */
export interface IdRange extends Part {
    readonly until: Position;
}

function upTo(until: Position | undefined, values: unknown[]): readonly string[] {
    return until === undefined ? [] : [`rows.id <= $${values.push(until.id)}`];
}

function betweenIds({ after, until }: Pick<Part, 'after' | 'until'> = {}, values: unknown[]): readonly string[] {
    return [...(after === undefined ? [] : [`rows.id > $${values.push(after.id)}`]), ...upTo(until, values)];
}

/** The statement that counts the rows of a selection. */
export function counting(source: CollectionSource, path: readonly number[], where: Filters): Statement {
    const values: unknown[] = [...path];
    return { text: `select count(*)::integer as count from ${source.from} where ${counted(source, where, values).join(' and ')}`, values };
}

/**
 * The same of those of a range of ids, which tells where the next one begins, and how many milliseconds it took, without what it has waited for others before.
 */
export function countingRange(source: CollectionSource, path: readonly number[], where: Filters, between: IdRange): Statement {
    const values: unknown[] = [...path];
    // In need of the time, the counting begins behind it.
    const all = [...counted(source, where, values, { isRange: true }), ...betweenIds(between, values), 'begun.at is not null'];
    const took = 'extract(epoch from scanwire.now() - begun.at)::double precision * 1000 as took';
    const next = nextId(source, `$${values.push(between.until.id)}::integer`, (index) => `$${index + 1}`);
    return {
        text: `select rows.count, ${took}, (${next}) as next from (select scanwire.now() as at offset 0) begun
            cross join lateral (select count(*)::integer as count from ${source.from} where ${all.join(' and ')}) rows`,
        values,
    };
}

function counted(source: CollectionSource, where: Filters, values: unknown[], { isRange = false } = {}): readonly string[] {
    return [...seenBelow(source), listedFor(source, where), ...conditions(source, where, values, { isRange })];
}

/** Selects the first id behind another in the table, whatever a selection wants of its row: an index has it. */
function nextId({ table, parents, listed = 'true' }: CollectionSource, after: string, parent: (index: number) => string): string {
    const own = parents.flatMap((column, index) => (column.startsWith('rows.') ? [`${column} = ${parent(index)}`] : []));
    return `select min(rows.id) from ${table} rows where ${[...own, listed, `rows.id > ${after}`].join(' and ')}`;
}

/** The statement that finds where the next range of ids begins, `next`; null behind the last one. */
export function beginning(source: CollectionSource, path: readonly number[], { id }: Pick<Position, 'id'>): Statement {
    // A parameter that nothing uses has no type.
    const values: unknown[] = [...path];
    const used = path.map((_, index) => `$${index + 1}::integer is not null`);
    const next = nextId(source, `$${values.push(id)}::integer`, (index) => `$${index + 1}`);
    return { text: `select (${next}) as next where ${['true', ...used].join(' and ')}`, values };
}

/** The statement that finds where the next rows end in the order of their change, whatever a selection wants of them. It reads an index and nothing else. */
export function ending(
    { table, parents }: CollectionSource,
    path: readonly number[],
    { after, since }: { readonly after: Position | undefined; readonly since: Date },
    rows: number,
): Statement {
    const values: unknown[] = [];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const own = parents.flatMap((column, index) => (column.startsWith('rows.') ? [`${column} = ${parameter(path[index])}`] : []));
    const behind = `(rows.updated_at, rows.id) > (${parameter(after?.updated_at ?? since)}::timestamptz, ${parameter(after?.id ?? 0)}::integer)`;
    const order = 'rows.updated_at, rows.id';
    return {
        text: `select ${order} from ${table} rows where ${[...own, behind].join(' and ')} order by ${order} offset ${rows - 1} limit 1`,
        values,
    };
}

/** The statement that reads when those rows of a selection by `updated_since` that are between two ids were changed, `changed` in milliseconds since the epoch. */
export function changing(
    source: CollectionSource,
    path: readonly number[],
    { where = {}, hosts, after, limit }: Selection,
    between: Pick<Part, 'after' | 'until'>,
): Statement {
    const values: unknown[] = [...path];
    const changed = columnOf(source, 'updated_at');
    const all = [...seenBelow(source), ...conditions(source, where, values), ...ofHosts(hosts, values), ...betweenIds(between, values)];
    if (after !== undefined) {
        all.push(
            `(${changed}, rows.id) > ($${values.push(after.updated_at ?? where.updated_since)}::timestamptz, $${values.push(after.id)}::integer)`,
        );
    }
    return {
        text: `select id, (extract(epoch from changed) * 1000)::float8 as changed from (
                select rows.id, ${changed} as changed from ${source.from} where ${all.join(' and ')} order by changed, rows.id limit ${limit}
            ) first`,
        values,
    };
}

function ofHosts(hosts: Selection['hosts'], values: unknown[]): readonly string[] {
    return hosts === undefined ? [] : [`rows.host_id = any ($${values.push(hosts)}::integer[])`];
}

/** The statement that reads a selection, in its order. */
export function selecting(source: CollectionSource, path: readonly number[], selection: Part, batch?: SortedBatch): Statement {
    const { where = {}, hosts, after, until, limit, extras = [] } = selection;
    const { from, staged } = source;
    const select = selected(source, extras);
    const values: unknown[] = [...path];
    const common = [...seenBelow(source), listedFor(source, where), ...conditions(source, where, values), ...ofHosts(hosts, values)];
    if (batch !== undefined) {
        const { ids, until, last } = batch;
        common.push(
            `rows.id = any ($${values.push(ids)}::bigint[])`,
            `(${columnOf(source, 'updated_at')}, rows.id) <= ($${values.push(until)}::timestamptz, $${values.push(last)}::bigint)`,
        );
    }

    const rest = (order: string): string => `order by ${order} limit ${limit}`;
    const part = (tables: string, more: readonly string[], order: string): string =>
        `select ${select} from ${tables} where ${[...common, ...more].join(' and ')} ${rest(order)}`;
    if (where.updated_since === undefined) {
        const ids = [`rows.id > $${values.push(after?.id ?? 0)}`, ...upTo(until, values)];
        return { text: part(from, ids, 'rows.id'), values };
    }

    values.push(after?.updated_at ?? where.updated_since, after?.id ?? 0);
    const [since, id] = [`$${values.length - 1}::timestamptz`, `$${values.length}::integer`];
    const last = until === undefined ? null : `($${values.push(until.updated_at)}::timestamptz, $${values.push(until.id)}::integer)`;
    const within = (changed: string): readonly string[] => [
        `(${changed}, rows.id) > (${since}, ${id})`,
        ...(last === null ? [] : [`(${changed}, rows.id) <= ${last}`]),
    ];
    const inOrder = (tables: string, changed: string, more: readonly string[] = []): string =>
        part(tables, [...more, ...within(changed)], `${changed}, rows.id`);
    if (staged === undefined) {
        return { text: inOrder(from, columnOf(source, 'updated_at')), values };
    }

    const untouched = inOrder(from, 'rows.updated_at', [UNTOUCHED]);
    const touched = inOrder(staged, 'staged.updated_at');
    return { text: `select * from ((${untouched}) union all (${touched})) both_parts ${rest('updated_at, id')}`, values };
}

/** Rows that come one behind the other in the order of changes: their ids, and the place of the last of them, as texts. */
export interface SortedBatch {
    readonly ids: string;
    readonly until: string;
    readonly last: string;
    readonly rows: number;
}

/** The statement that reads the order of a selection, by batches. */
export function sorting(source: CollectionSource, path: readonly number[], selection: Selection): Statement {
    const order = { ...source, select: `rows.id, ${columnOf(source, 'updated_at')} as changed` };
    const { text, values } = selecting(order, path, { ...selection, extras: [] });
    return {
        text: `select array_agg(id order by index)::text as ids, max(changed)::text as until, ((array_agg(id order by index desc))[1])::text as last,
                count(*)::integer as rows
            from (select id, changed, row_number() over (order by changed, id) - 1 as index from (${text}) sorted) placed
            group by index / ${BATCH} order by index / ${BATCH}`,
        values,
    };
}

/** The planner, who does not know how far it reaches, takes it for few rows: with other conditions by which rows are found it must not stand. */
function listedFor({ listed = 'true' }: CollectionSource, { address, updated_since }: Filters): string {
    return address === undefined && updated_since === undefined ? listed : 'true';
}

/** The same where the planner finds no good way to rows of some addresses; null where it does. */
export function selectingByAddress(source: CollectionSource, path: readonly number[], selection: Part): Statement | null {
    const { where: { address, ...others } = {}, hosts, after, until, limit = 0, extras = [] } = selection;
    if (address === undefined || others.updated_since !== undefined || hosts !== undefined) {
        return null;
    }

    const values: unknown[] = [...path];
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const where = [...seenBelow(source), ...conditions(source, others, values), ...upTo(until, values)];
    const { from, byHost, hasBlocks } = source;
    const behind = `${parameter(after?.id ?? 0)}::integer`;
    const ids = idsByAddress({
        from,
        where,
        range: address,
        after: behind,
        limit,
        byHost: byHost === true,
        hasBlocks: hasBlocks === true,
        parameter,
    });
    return ids === null
        ? null
        : { text: `select ${selected(source, extras)} from ${from} where rows.id = any (array(${ids})) order by rows.id`, values };
}

function selected(source: CollectionSource, extras: readonly ExtraField[]): string {
    return [source.select, ...extras.map((field) => `${columnOf(source, field)} as ${field}`)].join(', ');
}

function columnOf({ column }: CollectionSource, field: string): string {
    return column?.(field) ?? `rows.${field}`;
}

/** What the filters say, as conditions; their values go behind those that are there. `updated_since` is said by the order. */
function conditions(source: CollectionSource, where: Filters, values: unknown[], { isRange = false } = {}): readonly string[] {
    const { address, search, updated_since, last_seen_since, ...whole } = where;
    const parameter = (value: unknown): string => `$${values.push(value)}`;
    const said = Object.entries(whole)
        .filter(([field, value]) => value !== undefined && source.filters.includes(field as FilterName))
        .map(([field, value]) => `${columnOf(source, field)} = ${parameter(value)}::text`);
    if (address !== undefined) {
        const isWithin = `${source.byHost ? 'hosts' : 'rows'}.address between ${parameter(address.first)}::inet and ${parameter(address.last)}::inet`;
        // For each range of ids the planner, who knows nothing of a table that grows, would read all hosts of these addresses: the `case` hides it from the planner.
        said.push(isRange && !areFew(address) ? `case when ${isWithin} then true else false end` : isWithin);
    }

    if (search !== undefined) {
        const text = parameter(search);
        said.push(
            `(${(source.searched ?? []).map((field) => `position(lower(${text}::text) in lower(${columnOf(source, field)})) > 0`).join(' or ')})`,
        );
    }

    for (const [field, since] of [['updated_at', updated_since] as const, ['last_seen', last_seen_since] as const]) {
        if (since !== undefined) {
            said.push(`${columnOf(source, field)} >= ${parameter(since)}::timestamptz`);
        }
    }
    return said;
}
