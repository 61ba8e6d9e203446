import type { AuditEntry, AuditStore } from '../../lib/audit/audit-trail.ts';
import { assertStoreOptions, IMPATIENT, IMPATIENT_ON_SERVER, type PoolLike, patiently, type Row, withDates } from './database.ts';

/** So many of those that are too old go with each that comes. */
const FORGOTTEN = 100;

/** Who removes the same at the same time waits for nobody. */
const BEGIN = `
with old as (
    select e.id from scanwire.audit_entries e
    where $4::double precision is not null and e.at < (select scanwire.now() - $4::double precision * interval '1 millisecond')
    order by e.at, e.id limit ${FORGOTTEN}
    for update skip locked
),
forgotten as (
    delete from scanwire.audit_entries e using old o where e.id = o.id
)
insert into scanwire.audit_entries (at, actor, operation, subject) values (scanwire.now(), $1, $2, $3) returning id::text`;

const COMPLETE = 'update scanwire.audit_entries set outcome = $2, subject = $3 where id = $1::bigint';

const LIST = `
select e.id::text, e.at, e.actor, e.operation, e.subject, e.outcome
from scanwire.audit_entries e
where
    ($2::timestamptz is null or e.at >= $2) and ($3::timestamptz is null or e.at < $3)
    and ($4::text is null or e.actor = $4) and ($5::text is null or e.operation = $5)
    and ($6::bigint is null or (e.at, e.id) < (select a.at, a.id from scanwire.audit_entries a where a.id = $6))
order by e.at desc, e.id desc
limit $1`;

/** An id of an entry. */
const ID = /^[1-9]\d{0,17}$/;

/** The audit trail in the table `scanwire.audit_entries`. */
export function postgresAudit(options: { readonly pool: PoolLike }): AuditStore {
    assertStoreOptions(options, 'postgresAudit');
    const db = patiently(options.pool, IMPATIENT);
    const reading = patiently(options.pool, IMPATIENT_ON_SERVER);
    return {
        async begin({ actor, operation, subject }, keepFor) {
            const { rows } = await db.query<{ id: string }>(BEGIN, [actor, operation, subject, keepFor]);
            return (rows[0] as { id: string }).id;
        },

        async complete(id, { outcome, subject }) {
            await db.query(COMPLETE, [id, outcome, subject]);
        },

        async list({ limit, since = null, until = null, actor = null, operation = null, after = null }) {
            if (after !== null && !ID.test(after)) {
                return [];
            }
            const { rows } = await reading.query<Row<AuditEntry>>(LIST, [limit, since, until, actor, operation, after]);
            return rows.map((row) => withDates(row, ['at']));
        },
    };
}
