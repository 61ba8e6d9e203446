import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { ExporterNotice } from '../../../lib/webhooks/events/exporter-notices.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporters/exporter.ts';
import type { ExporterSummary } from '../../../lib/webhooks/exporters/exporter-lists.ts';
import type { ExporterStore } from '../../../lib/webhooks/exporters/exporter-store.ts';
import { byPlainSetting, type SettingName } from '../../../lib/webhooks/exporters/plain-settings.ts';
import { patchRefusal, storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { guarded, type Row, type Time, uuidOrNull, withDates } from '../database.ts';
import { isUniqueViolation, joinedError } from '../database-errors.ts';
import { activityOfEach, countedIn, healths } from './exporter-health.ts';
import { removeExporter } from './exporter-removal.ts';

type ExporterRow = Row<StoredExporter>;

/** Every field of a stored exporter but its plain settings, each a column, and whether it is a time. */
const OWN_FIELDS: { readonly [Field in Exclude<keyof StoredExporter, SettingName>]: 'value' | 'time' } = {
    id: 'value',
    url: 'value',
    type: 'value',
    legacy: 'value',
    schedule: 'value',
    headerNames: 'value',
    state: 'value',
    stopReason: 'value',
    pausedAt: 'time',
    consecutiveFailures: 'value',
    sealedSecret: 'value',
    previousSecrets: 'value',
    sealedHeaders: 'value',
    sealedFormatSecret: 'value',
    authentication: 'value',
    sealedAuthentication: 'value',
    owner: 'value',
    createdAt: 'time',
    updatedAt: 'time',
};

const EXPORTER_FIELDS = { ...OWN_FIELDS, ...byPlainSetting(() => 'value') };
const FIELDS = Object.keys(EXPORTER_FIELDS) as (keyof StoredExporter)[];
const TIMES = FIELDS.filter((field) => EXPORTER_FIELDS[field] === 'time');

/** A {@link StoredExporter} of exporters `e`. */
export const EXPORTER_COLUMNS: string = FIELDS.map((field) => `e.${columnOf(field)} as "${field}"`).join(', ');

/** The exporter of a row of {@link EXPORTER_COLUMNS}. */
export function exporterFromRow(row: ExporterRow): StoredExporter {
    // A row that was altered by hand must not keep others from being read: it signs with its current secret only.
    const previous: ExporterRow['previousSecrets'] = Array.isArray(row.previousSecrets) ? row.previousSecrets : [];
    const previousSecrets = previous
        .filter((one) => typeof one?.sealed === 'string')
        .map(({ sealed, until }) => ({ sealed, until: new Date(until) }));
    return { ...withDates(row, TIMES), previousSecrets };
}

const SELECT = `select ${EXPORTER_COLUMNS} from scanwire.exporters e`;

const ALL = `${SELECT} order by e.created_at, e.seq`;
const ALL_OF_OWNER = `${SELECT} where e.owner = $1 order by e.created_at, e.seq`;

/** Exporters with the ids `$1` and the owner `$2`; a parameter that is null allows any. */
const SUMMARIES = `
select
    e.id, e.name, e.collector, e.owner, e.state, e.stop_reason as "stopReason", e.paused_at as "pausedAt",
    e.consecutive_failures as "consecutiveFailures"
from scanwire.exporters e
where ($1::uuid[] is null or e.id = any ($1)) and ($2::text is null or e.owner = $2)
order by e.created_at, e.seq`;

/**
 * At most `$1` exporters, behind the one with the id `$2`, of the owner `$3`; a parameter that is null allows any. An id of another owner's
 * exporter selects nothing, so that not even its position in the list becomes known.
 */
const PAGE = `
${SELECT}
left join scanwire.exporters a on a.id = $2::uuid and ($3::text is null or a.owner = $3)
where ($3::text is null or e.owner = $3) and (a.id is null or (e.created_at, e.seq) > (a.created_at, a.seq))
order by e.created_at, e.seq
limit $1`;

/** The subscribers. There is at least one row, which carries the revision. */
const SUBSCRIBERS = `
select s.revision, scanwire.now() as at, ${EXPORTER_COLUMNS}
from scanwire.subscriptions s
left join scanwire.exporters e on e.selective and (e.state = 'running' or e.stop_reason is not null)
order by e.created_at, e.seq`;

interface SubscriberRow extends ExporterRow {
    readonly revision: string;
    readonly at: Time;
}

/** At most `$1` notices, behind the position `$2`. */
const NOTICES = `
select
    n.id, n.seq as position, n.exporter_id as "exporterId", n.kind, n.at, n.name, n.collector, n.owner, n.failures, n.failing_since as "failingSince", n.reason,
    n.last_outcome as "lastOutcome"
from scanwire.exporter_notices n
where n.seq > $2
order by n.seq
limit $1`;

const FORGET_NOTICES = 'delete from scanwire.exporter_notices where id = any ($1::uuid[]) returning id';

/** The breaker of an exporter that never failed. */
const CLOSED_BREAKER = `consecutive_failures = 0, ${['probe_at', 'failed_at', 'failing_since', 'paused_until', 'recovered_at', 'slow_start']
    .map((column) => `${column} = null`)
    .join(', ')}`;

/** Exporters in `scanwire.exporters`. */
export function exporters(db: Executor): ExporterStore {
    async function get(id: string): Promise<StoredExporter | null> {
        const { rows } = await db.query<ExporterRow>(`${SELECT} where e.id = $1`, [uuidOrNull(id)]);
        return rows[0] === undefined ? null : exporterFromRow(rows[0]);
    }

    return {
        get,

        async insert(exporter) {
            const values = columnValues(exporter);
            const columns = Object.keys(values);
            const parameters = columns.map((_, index) => `$${index + 1}`);
            const sql = `insert into scanwire.exporters (${columns.join(', ')}) values (${parameters.join(', ')})`;
            try {
                await db.query(sql, Object.values(values));
            } catch (error) {
                throw isUniqueViolation(error) ? storeRefusals.exporterExists(error) : error;
            }
        },

        async list({ owner } = {}) {
            const { rows } = owner === undefined ? await db.query<ExporterRow>(ALL) : await db.query<ExporterRow>(ALL_OF_OWNER, [owner]);
            return rows.map(exporterFromRow);
        },

        async subscribers(tx) {
            const { rows } = await (tx === undefined ? db : guarded(tx, {}, joinedError)).query<SubscriberRow>(SUBSCRIBERS);
            const exporters = rows.filter(({ id }) => id !== null).map(({ revision: _, at: __, ...row }) => exporterFromRow(row));
            return { revision: Number(rows[0]?.revision), at: new Date(rows[0]?.at as Time), exporters };
        },

        async notices(limit, after = 0) {
            const { rows } = await db.query<Row<ExporterNotice>>(NOTICES, [limit, after]);
            return rows.map((row) => ({ ...withDates(row, ['at', 'failingSince']), position: Number(row.position) }));
        },

        async forgetNotices(ids) {
            const { rows } = await db.query<{ readonly id: string }>(FORGET_NOTICES, [ids]);
            return rows.map(({ id }) => id);
        },

        async health(id) {
            const [health] = (await healths(db, [id])).values();
            return health ?? null;
        },

        ...lists(db),
        overview: (limit) => countedIn(db, limit),

        async update(id, asked) {
            const { expectedType, expectedSecret, expectedHeaders, expectedFormatSecret, expectedAuthentication, ...others } = asked;
            const { expectedUrl, expectedOwner, ...patch } = others;
            const values = columnValues(patch);
            const assignments = [
                'updated_at = scanwire.now()',
                ...(patch.state === 'running' ? [CLOSED_BREAKER] : []),
                ...Object.keys(values).map((column, index) => `${column} = $${index + 13}`),
            ];
            const { rows } = await db.query<ExporterRow>(
                `update scanwire.exporters e set ${assignments.join(', ')}
                where e.id = $1 and e.type = coalesce($2, e.type) and e.sealed_secret = coalesce($3, e.sealed_secret)
                    and (not $4::boolean or e.sealed_headers is not distinct from $5) and e.url = coalesce($6, e.url)
                    and (not $7::boolean or e.sealed_authentication is not distinct from $8)
                    and (not $9::boolean or e.sealed_format_secret is not distinct from $10)
                    and (not $11::boolean or e.owner is not distinct from $12)
                returning ${EXPORTER_COLUMNS}`,
                [
                    uuidOrNull(id),
                    expectedType ?? null,
                    expectedSecret ?? null,
                    expectedHeaders !== undefined,
                    expectedHeaders ?? null,
                    expectedUrl ?? null,
                    expectedAuthentication !== undefined,
                    expectedAuthentication ?? null,
                    expectedFormatSecret !== undefined,
                    expectedFormatSecret ?? null,
                    expectedOwner !== undefined,
                    expectedOwner ?? null,
                    ...Object.values(values),
                ],
            );
            if (rows[0] !== undefined) {
                return exporterFromRow(rows[0]);
            }

            const found = await get(id);
            if (found === null) {
                throw storeRefusals.unknownExporter();
            }
            const refusal = patchRefusal(found, asked);
            if (refusal === null && asked.owner !== undefined && asked.owner !== found.owner) {
                throw storeRefusals.ownerStays();
            }
            // The row was changed again since.
            throw refusal ?? storeRefusals.exporterHeadersChanged();
        },

        remove: (id) => removeExporter(db, id),
    };
}

/** Of many exporters at once. */
function lists(db: Executor): Required<Pick<ExporterStore, 'summaries' | 'page'>> {
    return {
        async summaries({ ids, owner }) {
            const { rows } = await db.query<Row<ExporterSummary>>(SUMMARIES, [ids?.filter(isUuid) ?? null, owner ?? null]);
            return rows.map((row) => withDates(row, ['pausedAt']));
        },

        async page(query) {
            const { rows } = await db.query<ExporterRow>(PAGE, [query.limit, uuidOrNull(query.after ?? ''), query.owner ?? null]);
            const ids = rows.map(({ id }) => id);
            const [health, slices] = await Promise.all([healths(db, ids), activityOfEach(db, ids, query)]);
            return rows.flatMap((row) => {
                const found = health.get(row.id);
                return found === undefined ? [] : [{ exporter: exporterFromRow(row), health: found, slices: slices.get(row.id) ?? [] }];
            });
        },
    };
}

/**
 * Column and parameter of each field that is set. Names of columns come from the table of fields only, never from the input; lists
 * and objects are JSON text, which both drivers pass on untouched.
 */
function columnValues(values: Partial<StoredExporter>): Record<string, unknown> {
    const set = FIELDS.filter((field) => values[field] !== undefined);
    return Object.fromEntries(set.map((field) => [columnOf(field), parameter(values[field])]));
}

/** `header_names` for `headerNames`. */
function columnOf(field: string): string {
    return field.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function parameter(value: unknown): unknown {
    return typeof value === 'object' && value !== null && !(value instanceof Date) ? JSON.stringify(value) : value;
}
