import type { Executor } from '../../lib/executor.ts';
import type { StoredExporter } from '../../lib/webhooks/exporter.ts';
import { INTERRUPTIONS, interrupted } from '../../lib/webhooks/outcome.ts';
import { type ExporterPatch, type ExporterStore, storeRefusals } from '../../lib/webhooks/store.ts';
import { isUniqueViolation, isUuid } from './database.ts';
import { EXPORTER_COLUMNS, exporterColumns, exporterFromRow, type Row } from './webhook-rows.ts';

type ExporterRow = Row<StoredExporter>;

/** Exporters in `scanwire.exporters`. */
export function exporters(db: Executor): ExporterStore {
    return {
        insert: (exporter) => insert(db, exporter),
        update: (id, patch, at) => update(db, id, patch, at),

        async get(id) {
            const { rows } = await db.query<ExporterRow>(`select ${EXPORTER_COLUMNS} from scanwire.exporters e where e.id = $1`, [
                uuidOrNull(id),
            ]);
            return rows[0] === undefined ? null : exporterFromRow(rows[0]);
        },

        async list() {
            const { rows } = await db.query<ExporterRow>(
                `select ${EXPORTER_COLUMNS} from scanwire.exporters e order by e.created_at, e.seq`,
            );
            return rows.map(exporterFromRow);
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
    const columns = exporterColumns(exporter);
    const parameters = Object.keys(columns).map((_, index) => `$${index + 1}`);
    try {
        await db.query(
            `insert into scanwire.exporters (${Object.keys(columns).join(', ')}) values (${parameters.join(', ')})`,
            Object.values(columns),
        );
    } catch (error) {
        throw isUniqueViolation(error) ? storeRefusals.exporterExists(error) : error;
    }
}

async function update(db: Executor, id: string, { ifType, ...patch }: ExporterPatch, at: Date): Promise<StoredExporter> {
    const columns = {
        ...exporterColumns({ ...patch, updatedAt: at }),
        ...(patch.state === 'running' ? { consecutive_failures: 0, probe_at: null } : {}),
    };
    const assignments = Object.keys(columns).map((column, index) => `${column} = $${index + 3}`);
    const { rows } = await db.query<ExporterRow>(
        `update scanwire.exporters e set ${assignments.join(', ')} where e.id = $1 and e.type = coalesce($2, e.type) returning ${EXPORTER_COLUMNS}`,
        [uuidOrNull(id), ifType ?? null, ...Object.values(columns)],
    );
    if (rows[0] !== undefined) {
        return exporterFromRow(rows[0]);
    }

    const { rows: existing } = await db.query('select 1 from scanwire.exporters where id = $1', [uuidOrNull(id)]);
    throw existing.length === 0 ? storeRefusals.unknownExporter() : storeRefusals.exporterTypeChanged();
}

function uuidOrNull(id: string): string | null {
    return isUuid(id) ? id : null;
}
