import Joi from 'joi';
import { ScanwireError } from '../errors.ts';
import { checked, fieldPath, isObject } from '../schema-validation.ts';
import { emptyValue, isRowId } from './fields.ts';
import { HOST_FALLBACKS, type Host, hostSchema } from './host.ts';
import {
    type Note,
    noteSchema,
    type Service,
    type Session,
    serviceSchema,
    sessionSchema,
    type Vuln,
    vulnSchema,
    type Workspace,
    type WorkspaceNote,
    type WorkspaceVuln,
    workspaceNoteSchema,
    workspaceSchema,
    workspaceVulnSchema,
} from './resources.ts';
import type { Selection } from './selection.ts';
import type { Collection, InventoryStore, ReadOptions } from './store.ts';

/** Which rows are wanted: those with an id above `after`, in ascending id, at most `limit` of them. */
export interface Page {
    /** 0 for the first page. */
    readonly after: number;
    readonly limit: number;
    /** Aborts when nobody waits for the rows any more. */
    readonly signal?: AbortSignal | undefined;
}

/** Reads rows below their parents, whose ids stand in the path from the outside in. All rows that are left are fewer than `limit`. */
export type ReadRows<Row, Parents extends readonly number[]> = (parents: Parents, page: Page) => readonly Row[] | Promise<readonly Row[]>;

type TimeFields<Row> = { readonly [Field in keyof Row]: Date extends Row[Field] ? Field : never }[keyof Row];

/** A row with what it cannot do without; anything else may be missing or null. Times are dates, texts in ISO 8601, or milliseconds. */
export type GivenRow<Row, Needed extends keyof Row> = {
    readonly [Field in Needed]: Field extends TimeFields<Row> ? Date | string | number : Row[Field];
} & {
    readonly [Field in Exclude<keyof Row, Needed>]?:
        | (Field extends TimeFields<Row> ? Date | string | number : Row[Field])
        | null
        | undefined;
};

/** A function for each collection; for one that is left out there are no routes. Ids are positive whole numbers up to 2,147,483,647. */
export interface InventoryFunctions {
    readonly workspaces: ReadRows<GivenRow<Workspace, 'id' | 'name' | 'created_at'>, readonly []>;
    readonly hosts: ReadRows<GivenRow<Host, 'id' | 'address' | 'created_at'>, BelowWorkspace>;
    readonly services?: ReadRows<GivenRow<Service, 'id' | 'port' | 'proto' | 'created_at'>, BelowHost>;
    readonly notes?: ReadRows<GivenRow<Note, 'id' | 'created_at'>, BelowHost>;
    readonly sessions?: ReadRows<GivenRow<Session, 'id' | 'opened_at'>, BelowHost>;
    readonly vulns?: ReadRows<
        GivenRow<Vuln, 'id' | 'name' | 'created_at'>,
        readonly [workspaceId: number, hostId: number, serviceId: number]
    >;
    readonly hostVulns?: ReadRows<GivenRow<WorkspaceVuln, 'id' | 'name' | 'created_at'>, BelowHost>;
    readonly workspaceServices?: ReadRows<GivenRow<Service, 'id' | 'host_id' | 'port' | 'proto' | 'created_at'>, BelowWorkspace>;
    readonly workspaceNotes?: ReadRows<GivenRow<WorkspaceNote, 'id' | 'host_id' | 'created_at'>, BelowWorkspace>;
    readonly workspaceSessions?: ReadRows<GivenRow<Session, 'id' | 'host_id' | 'opened_at'>, BelowWorkspace>;
    readonly workspaceVulns?: ReadRows<GivenRow<WorkspaceVuln, 'id' | 'host_id' | 'name' | 'created_at'>, BelowWorkspace>;
}

type BelowWorkspace = readonly [workspaceId: number];

type BelowHost = readonly [workspaceId: number, hostId: number];

/** How rows are read. */
export interface ReadOnlyInventoryOptions {
    /** Whether the first rows of each page are checked field by field. By default they are, unless `NODE_ENV` is `production`. */
    readonly check?: boolean;
    /** Rows of a page. Default 500. */
    readonly pageSize?: number;
}

const reads = (): Joi.FunctionSchema => Joi.function();

const functionsSchema: Joi.ObjectSchema<InventoryFunctions> = Joi.object<InventoryFunctions, true>({
    workspaces: reads().required(),
    hosts: reads().required(),
    services: reads(),
    notes: reads(),
    sessions: reads(),
    vulns: reads(),
    hostVulns: reads(),
    workspaceServices: reads(),
    workspaceNotes: reads(),
    workspaceSessions: reads(),
    workspaceVulns: reads(),
})
    .with('vulns', 'services')
    .messages({ 'object.with': '{{#main}} needs {{#peer}}, below which they are' })
    .required();

const optionsSchema: Joi.ObjectSchema<Required<ReadOnlyInventoryOptions>> = Joi.object({
    check: Joi.boolean().default(() => process.env.NODE_ENV !== 'production'),
    pageSize: Joi.number().integer().min(1).default(500),
});

/**
 * A store for `rest-api-v2` out of functions that read pages of rows. Fields that are missing or null are filled with what stands for
 * nothing in them, ids of parents from the path; rows below a host or a service are read only where their parents exist.
 *
 * Reading rejects with ScanwireError `MISCONFIGURED` that names collection, row and field where a function gives something else than
 * rows in ascending id.
 */
export function readOnlyInventory(functions: InventoryFunctions, options: ReadOnlyInventoryOptions = {}): InventoryStore {
    const subject = 'readOnlyInventory';
    checked(functionsSchema, functions, { subject: `${subject} functions`, code: 'MISCONFIGURED' });
    const { check, pageSize } = checked(optionsSchema, options, { subject: `${subject} options`, code: 'MISCONFIGURED' });
    const made = new Map<string, AnyCollection>();
    for (const [name, kind] of Object.entries(KINDS)) {
        const read = (functions as unknown as Record<string, AnyReadRows | undefined>)[name];
        if (read !== undefined) {
            made.set(name, collection({ name, ...kind, read, check, pageSize }, kind.below === null ? undefined : made.get(kind.below)));
        }
    }

    return Object.fromEntries(made) as unknown as InventoryStore;
}

type Row = Readonly<Record<string, unknown>> & { readonly id: number };
type AnyReadRows = (parents: readonly number[], page: Page) => unknown;
type AnyCollection = Collection<Row>;
type Fallbacks = Readonly<Record<string, (row: Readonly<Record<string, unknown>>) => unknown>>;

interface Kind {
    readonly schema: Joi.ObjectSchema;
    /** Fields that hold the ids of the path, from the outside in; null for one that the rows do not have. */
    readonly parents: readonly (string | null)[];
    /** The collection whose row must exist; null where the function itself looks below the right parent, or there is none. */
    readonly below: string | null;
    /** For fields whose nothing is not that of their type. */
    readonly fallbacks?: Fallbacks;
}

/** When it was changed is when it was made, for who does not know better. */
const UPDATED: Fallbacks = { updated_at: ({ created_at }) => created_at };

const SERVICE_FALLBACKS: Fallbacks = { ...UPDATED, state: () => 'unknown' };

/** Outer ones first. */
const KINDS: Readonly<Record<keyof InventoryStore, Kind>> = {
    workspaces: { schema: workspaceSchema, parents: [], below: null, fallbacks: UPDATED },
    hosts: { schema: hostSchema, parents: ['workspace_id'], below: null, fallbacks: { ...UPDATED, ...HOST_FALLBACKS } },
    services: {
        schema: serviceSchema,
        parents: [null, 'host_id'],
        below: 'hosts',
        fallbacks: SERVICE_FALLBACKS,
    },
    notes: { schema: noteSchema, parents: ['workspace_id', 'host_id'], below: 'hosts', fallbacks: UPDATED },
    sessions: { schema: sessionSchema, parents: [null, 'host_id'], below: 'hosts' },
    vulns: { schema: vulnSchema, parents: [null, 'host_id', 'service_id'], below: 'services', fallbacks: UPDATED },
    hostVulns: { schema: workspaceVulnSchema, parents: [null, 'host_id'], below: 'hosts', fallbacks: UPDATED },
    workspaceServices: { schema: serviceSchema, parents: [null], below: null, fallbacks: SERVICE_FALLBACKS },
    workspaceNotes: { schema: workspaceNoteSchema, parents: ['workspace_id'], below: null, fallbacks: UPDATED },
    workspaceSessions: { schema: sessionSchema, parents: [null], below: null },
    workspaceVulns: { schema: workspaceVulnSchema, parents: [null], below: null, fallbacks: UPDATED },
};

interface Source extends Kind {
    readonly name: string;
    readonly read: AnyReadRows;
    readonly check: boolean;
    readonly pageSize: number;
}

/**
 * What the row of an id is read with. The signal may be made when it is asked for, and many functions do not; an object with a getter of its own would take
 * as long as the look-up of a row.
 */
class OneRow {
    readonly after: number;
    readonly limit = 1;
    readonly #options: ReadOptions;

    constructor(id: number, options: ReadOptions) {
        this.after = id - 1;
        this.#options = options;
    }

    get signal(): AbortSignal | undefined {
        return this.#options.signal;
    }
}

function collection(source: Source, above: AnyCollection | undefined): AnyCollection {
    const filled = filling(source);

    async function page(parents: readonly number[], wanted: Page): Promise<readonly Row[]> {
        const given = await source.read(parents, wanted);
        const rows = rowsOf(source, given).map((row) => filled(row, parents));
        assertAscending(source, rows, wanted.after);
        if (source.check) {
            for (const [index, row] of rows.slice(0, CHECKED_ROWS).entries()) {
                assertRow(source, row, `${source.name}[${index}]`, parents);
            }
        }
        return rows;
    }

    async function exist(parents: readonly number[], options: ReadOptions): Promise<boolean> {
        const known = parents.length === source.parents.length && parents.every(isRowId);
        return known && (above === undefined || (await above.get(parents.slice(0, -1), parents.at(-1) as number, options)) !== null);
    }

    async function* select(parents: readonly number[], { after: behind, limit = Infinity }: Selection, options: ReadOptions = {}) {
        const { signal } = options;
        let left = (await exist(parents, options)) ? limit : 0;
        for (let after = behind?.id ?? 0; left > 0; ) {
            signal?.throwIfAborted();
            const size = Math.min(left, source.pageSize);
            const rows = await page(parents, { after, limit: size, signal });
            left = rows.length < size ? 0 : left - rows.length;
            after = rows.at(-1)?.id ?? after;
            if (rows.length > 0) {
                yield rows;
            }
        }
    }

    return {
        list: (parents, options) => select(parents, {}, options),
        select,

        async get(parents, id, options = {}) {
            if (!isRowId(id) || !(await exist(parents, options))) {
                return null;
            }

            const [row] = await page(parents, new OneRow(id, options));
            return row?.id === id ? row : null;
        },
    };
}

/** Makes a row whole: the fields of its schema and no others. */
function filling({
    schema,
    parents: parentFields,
    fallbacks = {},
}: Kind): (row: Readonly<Record<string, unknown>>, path: readonly number[]) => Row {
    const { id: _, ...described } = schema.describe().keys as Readonly<Record<string, Joi.Description>>;
    const fields = Object.entries(described).map(([name, description]) => {
        const { type, allow = [] } = description;
        const isFilled = type === 'string' && !allow.includes('');
        return { name, empty: emptyValue(description), isTime: type === 'date', isFilled, level: parentFields.indexOf(name) };
    });

    return (row, path) => {
        const whole: Record<string, unknown> = { id: row.id };
        for (const { name, empty, isTime, isFilled, level } of fields) {
            const fallback = fallbacks[name];
            const own = row[name] ?? (level === -1 ? null : path[level]);
            const isOpen = own === null || own === undefined || (own === '' && (isFilled || fallback !== undefined));
            const value = isOpen ? (fallback?.(row) ?? empty) : own;
            whole[name] = isTime && (typeof value === 'string' || typeof value === 'number') ? new Date(value) : value;
        }
        return whole as Row;
    };
}

/** How many rows of a page are checked. */
const CHECKED_ROWS = 3;

function rowsOf({ name }: Source, given: unknown): readonly Readonly<Record<string, unknown>>[] {
    if (!Array.isArray(given)) {
        const result = isObject(given) && 'rows' in given ? ': return its rows' : '';
        throw wrong(name, `must give an array of rows, [] when there are none; it gave ${kindOf(given)}${result}`);
    }

    const odd = given.findIndex((row) => !isObject(row));
    if (odd !== -1) {
        throw wrong(`${name}[${odd}]`, `must be a row, an object; it is ${kindOf(given[odd])}`);
    }
    return given as readonly Readonly<Record<string, unknown>>[];
}

function kindOf(value: unknown): string {
    const kind = Array.isArray(value) ? 'array' : typeof value;
    return value === null || value === undefined ? String(value) : `${/^[aeiou]/.test(kind) ? 'an' : 'a'} ${kind}`;
}

/** Rows of a collection in any order, each made whole as those of {@link readOnlyInventory} are. */
export function wholeRows(
    name: keyof InventoryStore,
): (given: readonly Readonly<Record<string, unknown>>[], path: readonly number[]) => readonly Row[] {
    const filled = filling(KINDS[name]);
    return (given, path) => {
        for (const [index, { id }] of given.entries()) {
            assertId(name, index, id);
        }
        return given.map((row) => filled(row, path));
    };
}

/** Without this a function that takes no notice of `after` would be asked for ever. */
function assertAscending({ name }: Source, rows: readonly Row[], after: number): void {
    let last = after;
    for (const [index, { id }] of rows.entries()) {
        assertId(name, index, id);
        if (id <= last) {
            throw wrong(name, 'must give rows in ascending id, above the `after` that it was given: where id > after order by id limit');
        }
        last = id;
    }
}

function assertId(name: string, index: number, id: unknown): void {
    if (!isRowId(id)) {
        throw wrong(`${name}[${index}].id`, `must be a whole number from 1 to 2147483647${hint(id)}`);
    }
}

function assertRow({ schema, parents: parentFields }: Source, row: Row, at: string, path: readonly number[]): void {
    const astray = parentFields.find((field, level) => field !== null && row[field] !== path[level]);
    if (astray !== undefined) {
        throw wrong(`${at}.${astray}`, `must be the id in the path, below which it was asked for${hint(row[astray ?? ''])}`);
    }

    const { error } = schema.validate(row, { convert: false, errors: { wrap: { label: false } } });
    const [detail] = error?.details ?? [];
    if (detail !== undefined) {
        const value = row[detail.path[0] as string];
        const rule = detail.message.replace(/^\S+ /, '').replace(/ with value .*/, ' its rule');
        throw wrong(`${at}.${fieldPath(detail.path)}`, `${rule}${hint(value)}`);
    }
}

/** What the value is instead, and what to do about the commonest mistakes. */
function hint(value: unknown): string {
    const remedies: Readonly<Record<string, string>> = {
        bigint: ', which JSON has no form for: make it a Number',
        string: ': drivers give columns of 64 bits as texts, so cast them, as in id::integer',
    };
    return `; it is ${kindOf(value)}${remedies[typeof value] ?? ''}`;
}

function wrong(field: string, message: string): ScanwireError {
    return new ScanwireError('MISCONFIGURED', `readOnlyInventory options: ${field} ${message}`, { field });
}
