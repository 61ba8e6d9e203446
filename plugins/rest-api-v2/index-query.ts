/** What the query and the headers of a request for an index ask for beyond all of it in JSON. */
import * as Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import Joi from 'joi';
import { addressRange } from '../../lib/address-range.ts';
import type { SchemaDescription } from '../../lib/application-schema.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { MAX_ID } from '../../lib/inventory/fields.ts';
import type { FilterName, Filters, Position, Selection } from '../../lib/inventory/selection.ts';
import type { Collection } from '../../lib/inventory/store.ts';
import { checked } from '../../lib/schema-validation.ts';
import { timestamp } from '../../lib/timestamp.ts';
import { orBadRequest } from '../errors.ts';
import { pathId } from '../route-parts.ts';
import { seesCuts } from '../streamed-answers.ts';
import type { AskedDeletions } from './deleted-rows.ts';
import type { ResourceRow } from './options.ts';
import type { Format, RowForm, RowForms } from './row-forms.ts';

/** How the rows of an index become text, and what was deleted from it. */
interface Forms {
    readonly forms: () => RowForms;
    readonly deletionForms: () => RowForms;
}

/** What is asked for. */
export interface Asked {
    /** Null for all rows, or for none of them. */
    readonly selection: Selection | null;
    /** What was deleted, in place of rows; null for rows. */
    readonly deleted: AskedDeletions | null;
    readonly form: RowForm;
    /** Whether all rows that fulfil the filters are to be counted, and can be. */
    readonly counts: boolean;
}

/** Rows of a page at most. */
const MAX_LIMIT = 1000;

/**
 * What a request asks for. Query parameters that nothing is known of are ignored, and so is what cannot be met of its headers.
 *
 * @throws Boom 400 for a value that is not of its form, and for what the store of the resource cannot do.
 */
export function askedOf(request: Request, rows: Collection<ResourceRow>, { forms, deletionForms }: Forms): Asked {
    const query = valuesOf(request.url.searchParams);
    return orBadRequest(() => {
        const format = formatOf(request);
        const deleted = deletedOf(query, rows);
        if (deleted !== null) {
            return { selection: null, deleted, form: deletionForms().form(format), counts: false };
        }

        const fields = fieldsOf(query.get('fields'), forms());
        return {
            selection: selectionOf(query, rows, forms(), fields),
            deleted,
            form: forms().form(format, fields),
            counts: Boolean(rows.count) && prefersCount(textOf(request.headers.prefer)),
        };
    });
}

/** The `Link` to the rows behind a page: the same request with another `after`. */
export function nextLink({ url }: Request, { selection, deleted }: Asked, last: LastRow): string {
    const query = new URLSearchParams(url.searchParams);
    const time = deleted === null ? last.updated_at : last.deleted_at;
    const isByTime = deleted !== null || selection?.where?.updated_since !== undefined;
    query.set('after', isByTime ? `${new Date(time as Date).getTime()}-${last.id}` : `${last.id}`);
    return `<${url.pathname}?${query}>; rel="next"`;
}

/** A row at the end of a page, or a deletion. */
type LastRow = ResourceRow & { readonly updated_at?: unknown; readonly deleted_at?: unknown };

type Values = ReadonlyMap<string, string>;

type FilterParser = (value: string, field: SchemaDescription | undefined) => Filters;

const WHOLE = ['state', 'name', 'os_name', 'arch', 'purpose'] as const;

const FILTER_PARSERS: Readonly<Record<FilterName, FilterParser>> = {
    ...(Object.fromEntries(WHOLE.map((name) => [name, wholeValue(name)])) as Record<(typeof WHOLE)[number], FilterParser>),
    address: (value) => ({ address: addressRange(value) }),
    search: (value) => {
        refuseUnless(value.length >= 1 && value.length <= 255, 'search', 'must have 1 to 255 characters');
        return { search: value };
    },
    updated_since: (value) => ({ updated_since: timeOf('updated_since', value) }),
    last_seen_since: (value) => ({ last_seen_since: timeOf('last_seen_since', value) }),
};

const DELETED = 'deleted_since';

function timeOf(name: 'updated_since' | 'last_seen_since' | typeof DELETED, value: string): Date {
    const rule = Joi.object<Record<string, string>>({ [name]: timestamp().required() });
    // A plus sign that is not escaped arrives as a space, which no time has.
    return new Date(checked(rule, { [name]: value.replace(' ', '+') })[name] as string);
}

const PARAMETERS: readonly string[] = ['limit', 'after', 'fields', DELETED, ...Object.keys(FILTER_PARSERS)];

/** The parameters that we know, each once. */
function valuesOf(params: URLSearchParams): Values {
    const values = new Map<string, string>();
    for (const name of PARAMETERS) {
        const [value, ...more] = params.getAll(name);
        if (more.length > 0) {
            throw Boom.badRequest(`${name} must be there once`);
        }
        if (value?.includes('\0')) {
            throw Boom.badRequest(`${name} must not contain the character NUL`);
        }
        if (value !== undefined) {
            values.set(name, value);
        }
    }
    return values;
}

function selectionOf(query: Values, rows: Collection<ResourceRow>, forms: RowForms, fields?: ReadonlySet<string>): Selection | null {
    const extras = rows.extras?.filter((field) => fields?.has(field)) ?? [];
    const where = filtersOf(query, rows, forms);
    const [limit, after] = [limitOf(query.get('limit')), positionOf(query.get('after'), byTime('updated_since', where?.updated_since))];
    const asks = limit !== undefined || after !== undefined || where !== undefined || extras.length > 0;
    const [first = 'fields'] = ['limit', 'after'].filter((name) => query.has(name));
    refuseUnless(!asks || Boolean(rows.select), first, 'cannot be met: the store of this index cannot be read page by page');
    return asks
        ? {
              ...(limit !== undefined && { limit }),
              ...(after !== undefined && { after }),
              ...(where !== undefined && { where }),
              ...(extras.length > 0 && { extras }),
          }
        : null;
}

/** Null where rows are asked for. */
function deletedOf(query: Values, { deletions }: Collection<ResourceRow>): AskedDeletions | null {
    const text = query.get(DELETED);
    if (text === undefined) {
        return null;
    }

    refuseUnless(deletions !== undefined, DELETED, 'cannot be met: the store of this index does not keep what was deleted');
    const other = [...query.keys()].find((name) => ![DELETED, 'limit', 'after'].includes(name)) ?? '';
    refuseUnless(other === '', other, `cannot stand beside ${DELETED}: of what was deleted only id and time are known`);
    const since = timeOf(DELETED, text);
    const [limit, after] = [limitOf(query.get('limit')), positionOf(query.get('after'), byTime(DELETED, since))];
    return { since, ...(limit !== undefined && { limit }), ...(after !== undefined && { after }) };
}

function filtersOf(query: Values, { select, filters = [] }: Collection<ResourceRow>, { fields }: RowForms): Filters | undefined {
    let where: Filters | undefined;
    for (const [name, parse] of Object.entries(FILTER_PARSERS)) {
        const value = query.get(name);
        if (value !== undefined) {
            const known = select ? filters : [];
            refuseUnless(known.includes(name as FilterName), name, `is no filter of this index; it has ${known.join(', ') || 'none'}`);
            where = { ...where, ...parse(value, fields.get(name)) };
        }
    }
    return where;
}

/** A value of a field that has a list of them must be one of these. */
function wholeValue(name: (typeof WHOLE)[number]): FilterParser {
    return (value, field) => {
        const { allow = [], flags = {} } = field ?? {};
        const isOpen = !('only' in flags) || allow.includes(value);
        refuseUnless(isOpen, name, `must be one of ${allow.filter((one) => typeof one === 'string').join(', ')}`);
        return { [name]: value };
    };
}

function limitOf(text: string | undefined): number | undefined {
    const limit = text === undefined ? undefined : pathId(text, MAX_LIMIT);
    refuseUnless(limit !== null && limit !== 0, 'limit', `must be a whole number from 1 to ${MAX_LIMIT}`);
    return limit ?? undefined;
}

const CHANGE = /^(-?\d{1,16})-(\d{1,10})$/;

/** An order by the time that a parameter is about. */
interface ByTime {
    readonly parameter: 'updated_since' | typeof DELETED;
    readonly since: Date;
}

function byTime(parameter: ByTime['parameter'], since: Date | undefined): ByTime | undefined {
    return since && { parameter, since };
}

/** The id of a row, or in an order by time that time of a row in milliseconds and its id; nothing before `since` is meant in any case. */
function positionOf(text: string | undefined, order: ByTime | undefined): Position | undefined {
    if (text === undefined) {
        return undefined;
    }

    const [, time, idText = ''] = order !== undefined ? (CHANGE.exec(text) ?? []) : [text, '0', text];
    const [id, updated_at] = [pathId(idText, MAX_ID), new Date(Number(time))];
    const rule =
        order !== undefined
            ? `as the link to the next page has it: with ${order.parameter} a time and an id`
            : `the id of a row, from 0 to ${MAX_ID}`;
    if (id === null || Number.isNaN(updated_at.getTime())) {
        throw new ScanwireError('INVALID_INPUT', `after must be ${rule}`, { field: 'after' });
    }
    if (order === undefined) {
        return { id };
    }
    return updated_at < order.since ? { id: 0, updated_at: order.since } : { id, updated_at };
}

/** They go out in their usual order, whatever the order in which they are named. */
function fieldsOf(text: string | undefined, { fields, extras }: RowForms): ReadonlySet<string> | undefined {
    const names = text?.split(',');
    const known = [...fields.keys(), ...extras.keys()];
    const unknown = names?.some((name) => !known.includes(name)) ?? false;
    refuseUnless(!unknown, 'fields', `must be names out of ${known.join(', ')}, with commas between them`);
    return names === undefined ? undefined : new Set(names);
}

function refuseUnless(holds: boolean, field: string, rule: string): void {
    if (!holds) {
        throw new ScanwireError('INVALID_INPUT', `${field} ${rule}`, { field });
    }
}

const NAMED: readonly (readonly [type: string, format: Format])[] = [
    ['application/x-ndjson', 'ndjson'],
    ['text/csv', 'csv'],
];

/**
 * The format that is liked best, of JSON by the most specific of the ranges that it is in. Of formats that are liked alike one that is named is meant, and JSON where it is.
 * JSON is it too where nothing else is named, and for who would not see that the others were cut.
 */
function formatOf(request: Request): Format {
    if (!seesCuts(request)) {
        return 'json';
    }

    const wanted = new Map(qualitiesOf(request.headers.accept));
    const json = wanted.get('application/json');
    let best: { readonly format: Format; readonly quality: number } = {
        format: 'json',
        quality: json ?? wanted.get('application/*') ?? wanted.get('*/*') ?? 0,
    };
    for (const [type, format] of NAMED) {
        const quality = wanted.get(type) ?? 0;
        const isMeant = quality === best.quality && quality > 0 && best.format === 'json' && json === undefined;
        if (quality > best.quality || isMeant) {
            best = { format, quality };
        }
    }
    return best.format;
}

/** What a header such as `Accept` lists, in lower case, each with how much it is wanted, from 0 for not at all to 1. */
export function qualitiesOf(header: unknown): readonly (readonly [name: string, quality: number])[] {
    return textOf(header)
        .toLowerCase()
        .split(',')
        .map((part) => {
            const [name = '', ...parameters] = part.split(';').map((piece) => piece.trim());
            return [name, Number(parameters.find((parameter) => parameter.startsWith('q='))?.slice(2) ?? 1)];
        });
}

/** Whether `Prefer: count=exact` is there, among whatever else. */
function prefersCount(prefer: string): boolean {
    return prefer.split(',').some((part) => EXACT_COUNT.test(part.split(';')[0]?.trim() ?? ''));
}

const EXACT_COUNT = /^count="?exact"?$/i;

/** A header, whose values stand in a list where it came several times. */
function textOf(header: unknown): string {
    return [header ?? ''].flat().join(',');
}
