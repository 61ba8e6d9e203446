import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { Replay, ReplayStore } from '../../../lib/webhooks/deliveries/replays.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { type Row, uuidOrNull, withDates } from '../database.ts';

const COLUMNS = `r.id, r.exporter_id as "exporterId", r.failed_since as "failedSince", r.rate, r.total, r.done, r.state,
    r.created_at as "createdAt", r.finished_at as "finishedAt"`;

/** `$1` of them. */
const NEWEST = 'select * from scanwire.replays o order by o.seq desc limit $1';

/** At most `$1` replays of the exporters `$2`. The index finds that many of each exporter, however many replays the planner expects the others to have. */
const NEWEST_OF_EXPORTERS = `
select r.*
from (select distinct unnest($2::uuid[])) x (exporter_id)
cross join lateral (
    select * from scanwire.replays o where o.exporter_id = x.exporter_id order by o.seq desc limit $1
) r
order by r.seq desc
limit $1`;

/** Those, and what runs of the older ones: few, which an index of their own has. */
function withRunning(newest: string, condition: string): string {
    return `
with newest as materialized (${newest}),
    running as materialized (select * from scanwire.replays o where o.state = 'running')
select ${COLUMNS}
from (select * from newest union all select * from running o where o.seq < (select min(seq) from newest) and ${condition}) r
order by r.seq desc`;
}

const LISTED = withRunning(NEWEST, 'true');
const LISTED_OF_EXPORTERS = withRunning(NEWEST_OF_EXPORTERS, 'o.exporter_id = any ($2::uuid[])');

/** Replays in `scanwire.replays`. */
export function replayStore(db: Executor): ReplayStore {
    return {
        async count({ exporterId, failedSince }) {
            const { rows } = await db.query<{ known: boolean; count: number }>(
                `select exists (select from scanwire.exporters e where e.id = $1) as known, count(*)::integer as count
                from scanwire.replayable_deliveries($1, $2, scanwire.now(), 0, 9223372036854775807, null)`,
                [uuidOrNull(exporterId), failedSince],
            );
            if (rows[0]?.known !== true) {
                throw storeRefusals.unknownExporter();
            }
            return rows[0].count;
        },

        async plan({ id, exporterId, failedSince, rate }) {
            const sql = `select ${COLUMNS} from scanwire.plan_replay($1, $2, $3, $4) r`;
            const { rows } = await db.query<Row<Replay>>(sql, [id, uuidOrNull(exporterId), failedSince, rate]);
            if (rows[0] === undefined) {
                throw storeRefusals.unknownExporter();
            }
            return replayFromRow(rows[0]);
        },

        async get(id) {
            const { rows } = await db.query<Row<Replay>>(`select ${COLUMNS} from scanwire.replays r where r.id = $1`, [uuidOrNull(id)]);
            if (rows[0] === undefined) {
                throw storeRefusals.unknownReplay();
            }
            return replayFromRow(rows[0]);
        },

        async list(limit, exporterIds) {
            const { rows } =
                exporterIds === undefined
                    ? await db.query<Row<Replay>>(LISTED, [limit])
                    : await db.query<Row<Replay>>(LISTED_OF_EXPORTERS, [limit, exporterIds.filter(isUuid)]);
            return rows.map(replayFromRow);
        },

        async advance(limit) {
            const { rows } = await db.query<{ open: boolean }>('select scanwire.advance_replays($1) as open', [limit]);
            return rows[0]?.open === true;
        },

        async cancel(id) {
            const { rows } = await db.query<Row<Replay>>(
                `update scanwire.replays r
                set
                    state = case r.state when 'running' then 'cancelled' else r.state end,
                    finished_at = coalesce(r.finished_at, scanwire.now())
                where r.id = $1
                returning ${COLUMNS}`,
                [uuidOrNull(id)],
            );
            if (rows[0] === undefined) {
                throw storeRefusals.unknownReplay();
            }
            return replayFromRow(rows[0]);
        },
    };
}

function replayFromRow(row: Row<Replay>): Replay {
    return withDates(row, ['failedSince', 'createdAt', 'finishedAt']);
}
