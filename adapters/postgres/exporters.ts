import type { Executor } from '../../lib/executor.ts';
import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import { type ExporterStore, storeRefusals } from '../../lib/webhooks/store.ts';
import { isUniqueViolation, type Row, uuidOrNull, withDates } from './database.ts';

type ExporterRow = Row<StoredExporter>;

/** Every field of a stored exporter, each a column, and whether it is a time. */
const EXPORTER_FIELDS: { readonly [Field in keyof StoredExporter]: 'value' | 'time' } = {
    id: 'value',
    name: 'value',
    url: 'value',
    collector: 'value',
    type: 'value',
    legacy: 'value',
    trust: 'value',
    signatures: 'value',
    schedule: 'value',
    headerNames: 'value',
    state: 'value',
    stopReason: 'value',
    consecutiveFailures: 'value',
    sealedSecret: 'value',
    previousSecrets: 'value',
    sealedHeaders: 'value',
    createdAt: 'time',
    updatedAt: 'time',
};

const FIELDS = Object.keys(EXPORTER_FIELDS) as (keyof StoredExporter)[];
const TIMES = FIELDS.filter((field) => EXPORTER_FIELDS[field] === 'time');

/** A {@link StoredExporter} of exporters `e`. */
export const EXPORTER_COLUMNS: string = FIELDS.map((field) => `e.${columnOf(field)} as "${field}"`).join(', ');

/** The exporter of a row of {@link EXPORTER_COLUMNS}. */
export function exporterFromRow(row: ExporterRow): StoredExporter {
    const previousSecrets = row.previousSecrets.map(({ sealed, until }) => ({ sealed, until: new Date(until) }));
    return { ...withDates(row, TIMES), previousSecrets };
}

const SELECT = `select ${EXPORTER_COLUMNS} from scanwire.exporters e`;

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

        async list() {
            const { rows } = await db.query<ExporterRow>(`${SELECT} order by e.created_at, e.seq`);
            return rows.map(exporterFromRow);
        },

        async update(id, { ifType, ifSecret, ...patch }) {
            const values = columnValues(patch);
            const assignments = [
                'updated_at = scanwire.now()',
                ...(patch.state === 'running' ? [CLOSED_BREAKER] : []),
                ...Object.keys(values).map((column, index) => `${column} = $${index + 4}`),
            ];
            const { rows } = await db.query<ExporterRow>(
                `update scanwire.exporters e set ${assignments.join(', ')}
                where e.id = $1 and e.type = coalesce($2, e.type) and e.sealed_secret = coalesce($3, e.sealed_secret)
                returning ${EXPORTER_COLUMNS}`,
                [uuidOrNull(id), ifType ?? null, ifSecret ?? null, ...Object.values(values)],
            );
            if (rows[0] !== undefined) {
                return exporterFromRow(rows[0]);
            }

            const found = await get(id);
            if (found === null) {
                throw storeRefusals.unknownExporter();
            }
            throw ifType !== undefined && found.type !== ifType
                ? storeRefusals.exporterTypeChanged()
                : storeRefusals.exporterSecretChanged();
        },

        async remove(id) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.removed));
            const sql = 'select scanwire.remove_exporter($1, scanwire.now(), $2) as removed';
            const { rows } = await db.query<{ removed: boolean }>(sql, [uuidOrNull(id), outcome]);
            return rows[0]?.removed ?? false;
        },
    };
}

/**
 * Column and parameter of each field that is set. Names of columns come from the table of fields only, never from the input; lists
 * are JSON text, which both drivers pass on untouched.
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
    return Array.isArray(value) ? JSON.stringify(value) : value;
}
