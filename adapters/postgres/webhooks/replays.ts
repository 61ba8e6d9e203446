import { isUuid } from '../../../lib/schema-validation.ts';
import type { Executor } from '../../../lib/transaction.ts';
import type { Replay, ReplaySelection, ReplayStore } from '../../../lib/webhooks/deliveries/replays.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { type Row, uuidOrNull, withDates } from '../database.ts';
import { paceOf, type Sizes } from '../pace.ts';

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

/** `$1` is an exporter. What has failed by the time that this answers with is counted, and nothing that was accepted after `last`. */
const MOMENT = `
select
    exists (select from scanwire.exporters e where e.id = $1) as known,
    scanwire.now() as at,
    coalesce((select max(d.seq) from scanwire.deliveries d), 0)::text as last`;

interface Moment {
    readonly known: boolean;
    readonly at: Date;
    readonly last: string;
}

/** `$1` the exporter, `$2` since when, `$3` and `$4` the moment, then behind what to begin, and how many to look at. */
const COUNT_FAILED = `
select seen, counted, array[reached::text] as reached from scanwire.count_failed($1, $2, $3, $4, $5, $6)`;
const COUNT_WAITING = `
select seen, counted, array[reached_due::text, reached::text] as reached from scanwire.count_waiting($1, $2, $3, $4, $5, $6, $7)`;

interface Piece {
    readonly seen: number;
    readonly counted: number;
    /** The last that was looked at. */
    readonly reached: readonly string[];
}

/** Deliveries that a statement looks at. */
const PIECE: Sizes = { first: 500, min: 100, max: 5_000, takes: 40 };

/** Replays in `scanwire.replays`. */
export function replayStore(db: Executor): ReplayStore {
    async function moment(exporterId: string): Promise<Moment> {
        const { rows } = await db.query<Moment>(MOMENT, [uuidOrNull(exporterId)]);
        const [now] = rows as [Moment];
        if (!now.known) {
            throw storeRefusals.unknownExporter();
        }
        return now;
    }

    /** What a replay has that is planned at a moment. */
    async function countAt({ exporterId, failedSince }: ReplaySelection, { at, last }: Moment): Promise<number> {
        const pace = paceOf(undefined, PIECE);
        const counting = async (statement: string, first: readonly string[]): Promise<number> => {
            let [after, total] = [first, 0];
            for (;;) {
                const size = pace.size();
                const { rows } = await pace.timed(size, () =>
                    db.query<Piece>(statement, [exporterId, failedSince, at, last, ...after, size]),
                );
                const [{ seen, counted, reached }] = rows as [Piece];
                total += counted;
                if (seen < size) {
                    return total;
                }
                after = reached;
            }
        };
        const failed = await counting(COUNT_FAILED, ['0']);
        // What is held waits for no other try.
        return failedSince === null ? failed : failed + (await counting(COUNT_WAITING, ['-infinity', '0']));
    }

    return {
        count: async (selection) => countAt(selection, await moment(selection.exporterId)),

        async plan({ id, exporterId, failedSince, rate }) {
            const now = await moment(exporterId);
            const total = await countAt({ exporterId, failedSince }, now);
            const { rows } = await db.query<Row<Replay>>(`select ${COLUMNS} from scanwire.begin_replay($1, $2, $3, $4, $5, $6, $7) r`, [
                id,
                exporterId,
                failedSince,
                rate,
                total,
                now.at,
                now.last,
            ]);
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
