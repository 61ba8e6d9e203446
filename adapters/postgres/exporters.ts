import { ScanwireError } from '../../lib/errors.ts';
import type { Executor } from '../../lib/executor.ts';
import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import type { ExporterPatch, ExporterStore } from '../../lib/webhooks/store.ts';
import { isUniqueViolation, isUuid } from './database.ts';
import { EXPORTER_COLUMNS, type ExporterRow, exporterFromRow, exporterParameter } from './webhook-rows.ts';

/** Exporters in `scanwire.exporters`. */
export function exporters(db: Executor): ExporterStore {
    return {
        async insert(exporter) {
            await insert(db, exporter);
        },

        async get(id) {
            const { rows } = await db.query<ExporterRow>('select * from scanwire.exporters where id = $1', [uuidOrNull(id)]);
            return rows[0] === undefined ? null : exporterFromRow(rows[0]);
        },

        async list() {
            const { rows } = await db.query<ExporterRow>('select * from scanwire.exporters order by created_at, seq');
            return rows.map(exporterFromRow);
        },

        async update(id, patch, at) {
            return await update(db, id, patch, at);
        },

        async remove(id, at) {
            const outcome = JSON.stringify(interrupted(0, INTERRUPTIONS.removed));
            const { rows } = await db.query<{ removed: boolean }>('select scanwire.remove_exporter($1, $2, $3) as removed', [
                uuidOrNull(id),
                at,
                outcome,
            ]);
            return rows[0]?.removed ?? false;
        },
    };
}

async function insert(db: Executor, exporter: StoredExporter): Promise<void> {
    const given = {
        id: exporter.id,
        legacy: exporter.legacy,
        consecutive_failures: exporter.consecutiveFailures,
        created_at: exporter.createdAt,
        updated_at: exporter.updatedAt,
        ...columnsOf(exporter),
    };
    const places = Object.keys(given).map((_, index) => `$${index + 1}`);
    try {
        await db.query(
            `insert into scanwire.exporters (${Object.keys(given).join(', ')}) values (${places.join(', ')})`,
            Object.values(given),
        );
    } catch (error) {
        if (isUniqueViolation(error)) {
            throw new ScanwireError('CONFLICT', 'an exporter with this id exists already', { cause: error });
        }
        throw error;
    }
}

async function update(db: Executor, id: string, { ifType, ...patch }: ExporterPatch, at: Date): Promise<StoredExporter> {
    const given = {
        updated_at: at,
        ...columnsOf(patch),
        ...(patch.state === 'running' ? { consecutive_failures: 0, probe_at: null } : {}),
    };
    const assignments = Object.keys(given).map((column, index) => `${column} = $${index + 3}`);
    const { rows } = await db.query<ExporterRow>(
        `update scanwire.exporters set ${assignments.join(', ')} where id = $1 and type = coalesce($2, type) returning *`,
        [uuidOrNull(id), ifType ?? null, ...Object.values(given)],
    );
    if (rows[0] !== undefined) {
        return exporterFromRow(rows[0]);
    }

    const { rows: found } = await db.query('select 1 from scanwire.exporters where id = $1', [uuidOrNull(id)]);
    throw found.length === 0
        ? new ScanwireError('NOT_FOUND', 'Unknown exporter', { field: 'id' })
        : new ScanwireError('CONFLICT', 'the exporter has another type by now');
}

/** Column and parameter of each property that is given. Names of columns come from the table only, never from the input. */
function columnsOf(given: Partial<StoredExporter>): Record<string, unknown> {
    const properties = Object.keys(EXPORTER_COLUMNS) as (keyof typeof EXPORTER_COLUMNS)[];
    return Object.fromEntries(
        properties
            .filter((property) => given[property] !== undefined)
            .map((property) => [EXPORTER_COLUMNS[property], exporterParameter(given[property])]),
    );
}

function uuidOrNull(id: string): string | null {
    return isUuid(id) ? id : null;
}
