import type { Executor } from '../../../lib/transaction.ts';
import { EVENT_MARGIN, type Expired, type RetentionStore } from '../../../lib/webhooks/deliveries/retention.ts';

/**
 * How many rows a step removes at most, and how many pages of events it reads. It takes a few milliseconds, and whoever needs the same rows waits
 * for no longer.
 */
const ROWS = 500;
const PAGES = 250;

/** A turn that has begun later than now, by a clock that was set back since, would keep all others from beginning until then. */
const BEGIN = `update scanwire.retention
    set begun_at = scanwire.now()
    where begun_at <= scanwire.now() - $1 * interval '1 millisecond' or begun_at > scanwire.now()
    returning true as begun`;

const BEFORE = `scanwire.now() - $1 * interval '1 millisecond'`;
const EXPIRE_RETAINED = `select * from scanwire.expire_retained_deliveries($2, ${BEFORE}, ${ROWS})`;
const EXPIRE_DELIVERIES = `select * from scanwire.expire_deliveries(${BEFORE}, ${ROWS})`;
const EXPIRE_EVENTS = `select * from scanwire.expire_events($2, ${BEFORE}, ${PAGES}, ${ROWS})`;

const EXPIRE_REPLAYS = expireByTime('replays', 'id', 'finished_at');
/** Removes traces by their own time, since some were kept for events that were never accepted. */
const EXPIRE_TRACES = expireByTime('traces', 'event_id', 'kept_at');

function expireByTime(table: string, key: string, time: string): string {
    return `with gone as (
    delete from scanwire.${table} where ${key} = any (array(
        select ${key} from scanwire.${table} where ${time} < (select ${BEFORE}) order by ${time} limit ${ROWS}
    )) returning 1
) select count(*)::integer as removed, case when count(*) = ${ROWS} then '0' end as next from gone`;
}

/** Retention in the tables of the migration `0038-retention`. */
export function retentionStore(db: Executor): RetentionStore {
    return {
        async begin(every) {
            return (await db.query(BEGIN, [every])).rows.length === 1;
        },

        async *expire(keepFor) {
            for await (const deliveries of steps(db, EXPIRE_RETAINED, (next) => [keepFor, next])) {
                yield { deliveries, events: 0 };
            }
            for await (const deliveries of steps(db, EXPIRE_DELIVERIES, () => [keepFor])) {
                yield { deliveries, events: 0 };
            }
            for await (const _ of steps(db, EXPIRE_REPLAYS, () => [keepFor])) {
                yield { deliveries: 0, events: 0 };
            }
            for await (const events of steps(db, EXPIRE_EVENTS, (next) => [keepFor + EVENT_MARGIN, next])) {
                yield { deliveries: 0, events };
            }
            for await (const _ of steps(db, EXPIRE_TRACES, () => [keepFor + EVENT_MARGIN])) {
                yield { deliveries: 0, events: 0 };
            }
        },
    };
}

/** What a step has removed, and the 64-bit number with which the next step begins, null after the last. */
interface Step {
    readonly next: string | null;
    readonly removed: number;
}

/** Yields what each step has removed. */
async function* steps(db: Executor, sql: string, parametersOf: (next: string) => readonly unknown[]): AsyncGenerator<Expired['events']> {
    let next: string | null = '0';
    while (next !== null) {
        const { rows }: { readonly rows: readonly Step[] } = await db.query<Step>(sql, [...parametersOf(next)]);
        next = rows[0]?.next ?? null;
        yield rows[0]?.removed ?? 0;
    }
}
