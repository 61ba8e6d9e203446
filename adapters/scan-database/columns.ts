import { ScanwireError } from '../../lib/errors.ts';
import { HOST_STATES, KNOWN_ARCHES } from '../../lib/inventory/host.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { rowText } from '../postgres/inventory/row-text.ts';

/** The columns of a table that are read. */
interface KnownColumns {
    /** What every version of the schema has. */
    readonly always: readonly string[];
    /** What some versions or editions lack: that goes out as if it were null. */
    readonly sometimes: readonly string[];
    /** What every version has and what goes out with no row: rows are found by it. */
    readonly unseen?: readonly string[];
}

/** The tables that are read. */
export const TABLES: Readonly<Record<string, KnownColumns>> = {
    workspaces: {
        always: ['id', 'name', 'created_at', 'updated_at'],
        sometimes: ['boundary', 'description', 'owner_id', 'limit_to_network'],
    },
    hosts: {
        always: [
            'id',
            'workspace_id',
            'created_at',
            'updated_at',
            'address',
            'mac',
            'comm',
            'name',
            'state',
            'os_name',
            'os_flavor',
        ].concat(['os_sp', 'os_lang', 'arch', 'purpose', 'info', 'comments']),
        sometimes: [
            'scope',
            'virtual_host',
            'note_count',
            'vuln_count',
            'service_count',
            'host_detail_count',
            'exploit_attempt_count',
        ].concat(['cred_count', 'nexpose_data_asset_id', 'history_count', 'detected_arch']),
    },
    services: { always: ['id', 'host_id', 'created_at', 'updated_at', 'port', 'proto', 'state', 'name', 'info'], sometimes: [] },
    notes: {
        always: ['id', 'host_id', 'created_at', 'updated_at', 'ntype', 'data'],
        sometimes: ['service_id', 'critical', 'seen'],
        unseen: ['workspace_id'],
    },
    sessions: {
        always: ['id', 'host_id', 'stype', 'via_exploit', 'via_payload', 'desc', 'port', 'platform', 'datastore', 'opened_at', 'closed_at'],
        sometimes: ['close_reason', 'local_id', 'last_seen', 'campaign_id'],
    },
    vulns: {
        always: ['id', 'host_id', 'service_id', 'created_at', 'updated_at', 'name', 'info'],
        sometimes: ['exploited_at', 'vuln_detail_count', 'vuln_attempt_count', 'nexpose_data_vuln_def_id'],
    },
};

/** The type of each column that is there, by `table.column`. */
export type Columns = ReadonlyMap<string, string>;

const READ_COLUMNS = `
    select tables.name || '.' || a.attname as column, format_type(a.atttypid, null) as type,
        has_column_privilege(a.attrelid, a.attnum, 'select') as readable
    from unnest($1::text[]) tables (name)
    join pg_attribute a on a.attrelid = to_regclass(tables.name) and a.attnum > 0 and not a.attisdropped`;

/** Which columns the tables of a database have. */
export async function readColumns(database: Executor): Promise<Columns> {
    const { rows } = await database.query<{ column: string; type: string; readable: boolean }>(READ_COLUMNS, [Object.keys(TABLES)]);
    const types = new Map(rows.map(({ column, type }) => [column, type]));
    const missing = Object.entries(TABLES).flatMap(([table, { always, unseen = [] }]) => {
        const needed = qualified(table, [...always, ...unseen]);
        const absent = needed.filter((column) => !types.has(column));
        return absent.length === needed.length ? [table] : absent;
    });
    refuse(missing, 'is not one of the Metasploit Framework, or its search_path is another: it lacks');

    const known = new Set(
        Object.entries(TABLES).flatMap(([table, { always, sometimes, unseen = [] }]) =>
            qualified(table, [...always, ...sometimes, ...unseen]),
        ),
    );
    refuse(
        rows.filter(({ column, readable }) => known.has(column) && !readable).map(({ column }) => column),
        'does not let this role read (grant select on the tables)',
    );
    return types;
}

/** The columns of a table that are known and there. */
export function columnsOf(table: string, columns: Columns): readonly string[] {
    const { always = [], sometimes = [] } = TABLES[table] ?? {};
    return [...always, ...sometimes].filter((column) => columns.has(`${table}.${column}`));
}

function qualified(table: string, columns: readonly string[]): string[] {
    return columns.map((column) => `${table}.${column}`);
}

function refuse(what: readonly string[], why: string): void {
    if (what.length > 0) {
        throw new ScanwireError('MISCONFIGURED', `The scan database ${why} ${what.join(', ')}`, { field: 'connectionString' });
    }
}

/** Expressions for columns that do not go out as they are; `rows` stands for the table. */
export type Computed = Readonly<Record<string, string>>;

const listed = (texts: Iterable<string>): string => [...texts].map((text) => `'${text}'`).join(', ');

/** As one value: the statements of long listings are planned each time, with each value of a list. */
const KNOWN_ARCH = `(rows.arch is null or rows.arch = any ('{${[...KNOWN_ARCHES].map((arch) => `"${arch}"`).join()}}'::text[]))`;

/** Of hosts: what an import would have made of the values. */
export function hostColumns(columns: Columns): Computed {
    const detected = columns.has('hosts.detected_arch') ? 'rows.detected_arch' : 'null';
    return {
        ...addressColumns(columns),
        // A host of which nobody says it is down counts as alive, as in an import.
        state: `case when rows.state is null or rows.state in ('', ${listed(HOST_STATES)}) then rows.state else 'unknown' end`,
        arch: `case when ${KNOWN_ARCH} then rows.arch else 'Unknown' end`,
        detected_arch: `case when ${KNOWN_ARCH} then ${detected} else coalesce(nullif(${detected}, ''), rows.arch) end`,
    };
}

/** In some versions it is text, and may have a zone. */
function addressColumns(columns: Columns): Computed {
    if (columns.get('hosts.address') === 'inet') {
        return { address: 'host(rows.address)' };
    }

    const own = columns.has('hosts.scope') ? 'rows.scope' : 'null';
    return {
        address: "lower(split_part(rows.address::text, '%', 1))",
        scope: `coalesce(nullif(split_part(rows.address::text, '%', 2), ''), ${own})`,
    };
}

/** How the columns of services are computed. */
export const SERVICE_COLUMNS: Computed = {
    proto: 'lower(rows.proto)',
    state: `case when rows.state in ('open', 'closed', 'filtered') then rows.state else 'unknown' end`,
};

/** Of hosts, side by side: what few of them have any of. */
export const RARELY_COUNTED: readonly string[] = ['host_detail_count', 'exploit_attempt_count', 'cred_count'];

/** The fields of which it is known by their expressions that JSON escapes nothing of what they hold. */
export function safeTexts(table: string, columns: Columns): readonly string[] {
    const known = { hosts: ['state', 'arch'], services: ['state'] }[table] ?? [];
    return columns.get(`${table}.address`) === 'inet' ? ['address', ...known] : known;
}

/** Times that stand in for one that is missing, of the row itself. */
const OTHER_TIMES: Readonly<Record<string, readonly string[]>> = {
    created_at: ['created_at', 'updated_at'],
    updated_at: ['updated_at', 'created_at'],
    opened_at: ['opened_at', 'last_seen', 'closed_at'],
};

/** The value of a column as it is read: times in milliseconds since 1970, a number whatever the driver and the session make of times. */
export function expression(table: string, column: string, columns: Columns): string {
    const type = columns.get(`${table}.${column}`) ?? '';
    if (isTime(column, type)) {
        return `floor(extract(epoch from ${timeOf(table, column, columns)}) * 1000)::double precision`;
    }

    // The driver gives 64 bits as text. An id beyond 32 bits is refused where rows are read, by its name.
    return type === 'bigint' ? `rows."${column}"::double precision` : `rows."${column}"`;
}

function isTime(column: string, type: string): boolean {
    return column in OTHER_TIMES || type.startsWith('timestamp');
}

/** The same time as a timestamp without a zone, in UTC; one that must not be missing is found elsewhere, or is the beginning of 1970. */
function timeOf(table: string, column: string, columns: Columns): string {
    const others = OTHER_TIMES[column];
    if (others === undefined) {
        return finite(`rows.${column}`, columns.get(`${table}.${column}`));
    }

    const own = others.map((other) => [table, 'rows', other] as const);
    const above = (column === 'updated_at' ? ['updated_at', 'created_at'] : ['created_at', 'updated_at']).map(
        (other) => ['workspaces', 'workspace', other] as const,
    );
    const found = (table === 'workspaces' ? own : [...own, ...above])
        .map(([of, name, other]) => ({ value: `${name}.${other}`, type: columns.get(`${of}.${other}`) }))
        .filter(({ type }) => type !== undefined);
    return `coalesce(${[...found.map(({ value, type }) => finite(value, type)), "'epoch'::timestamp"].join(', ')})`;
}

/** Times there have no zone and mean UTC; in a database that somebody has changed they may have one. */
function finite(value: string, type = ''): string {
    return `case when isfinite(${value}) then ${type === 'timestamp with time zone' ? `${value} at time zone 'UTC'` : value} end`;
}

/** The fields of rows in their order, with their kinds. */
export type WritableFields = Parameters<typeof rowText>[0];

type Kind = WritableFields[string];

/** Whose fields they are. */
export interface FieldSource {
    readonly table: string;
    readonly computed?: Computed;
    readonly fields: WritableFields;
}

/** The value of a field in SQL as it goes out, a time as one with a zone. */
export function outgoing(
    columns: Columns,
    { table, computed = {}, fields }: FieldSource,
    timed: (value: string) => string = zoned,
): (field: string) => string {
    const given = (field: string): string => {
        const form = formOf(fields[field]);
        const value = form === TIME ? timeOf : expression;
        return computed[field] ?? (columns.has(`${table}.${field}`) ? value(table, field, columns) : `null::${form.type}`);
    };
    return (field) => {
        const form = formOf(fields[field]);
        const { filled = form === TIME ? timed : (value: string): string => value } = form;
        return filled(given(field), given);
    };
}

function zoned(value: string): string {
    return `(${value}) at time zone 'UTC'`;
}

/** What a field is in SQL, and what stands for nothing in it, as where rows are read. */
interface Form {
    readonly type: string;
    readonly filled?: (value: string, other: (field: string) => string) => string;
}

const TEXT: Form = { type: 'text' };
const TIME: Form = { type: 'timestamp' };
const NUMBER: Form = { type: 'integer' };
const COUNT: Form = { ...NUMBER, filled: (value) => `coalesce(${value}, 0)` };
const FILLED_TEXT: Form = { ...TEXT, filled: (value) => `coalesce(${value}, '')` };

const FORMS: Readonly<Partial<Record<Kind, Form>>> = {
    id: NUMBER,
    nullableId: NUMBER,
    foreignId: NUMBER,
    count: COUNT,
    port: COUNT,
    time: TIME,
    nullableTime: TIME,
    text: FILLED_TEXT,
    vulnName: FILLED_TEXT,
    name: { ...TEXT, filled: (value, other) => `coalesce(nullif(${value}, ''), ${other('address')})` },
    state: { ...TEXT, filled: (value) => `coalesce(nullif(${value}, ''), 'alive')` },
};

function formOf(kind: Kind | undefined): Form {
    return (kind !== undefined && FORMS[kind]) || TEXT;
}
