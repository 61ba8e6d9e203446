import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * Sequences are no part of the snapshot that a dump is of: the mark of what is in flight was read after the rows, and others had raised it past theirs by then, which
 * nobody saw any more. Also the mark may be beyond the numbers that come next. Who begins lowers it; a mark that is too low is only dearer.
 */

const lower = `
create function scanwire.lower_mark_of_flights()
returns void
language plpgsql
set enable_seqscan = off
set enable_bitmapscan = off
set jit = off
as $$
begin
    -- Who is raising it has read it as it was.
    perform pg_advisory_xact_lock(hashtext('scanwire.landed_flights'), 0);
    perform setval('scanwire.landed_flights', m.lowered)
    from (
        select
            l.last_value as mark,
            least(
                l.last_value,
                (select f.last_value from scanwire.flights f),
                (select min(d.flight) from scanwire.deliveries d where d.stage = 'in flight')
            ) as lowered
        from scanwire.landed_flights l
    ) m
    where m.lowered < m.mark;
end
$$;
`;

/** Nobody waits to raise it: whoever has the lock does that, or lowers it. */
const raise = rewritten('raise_mark_of_flights', [
    [
        `    mark bigint := (select l.last_value from scanwire.landed_flights l);
`,
        `    mark bigint;
`,
    ],
    [
        `    if reached <= mark or current_setting('transaction_isolation') <> 'read committed' then
        return;
    end if;
`,
        `    if current_setting('transaction_isolation') <> 'read committed' or not pg_try_advisory_xact_lock(hashtext('scanwire.landed_flights'), 0) then
        return;
    end if;
    mark := (select l.last_value from scanwire.landed_flights l);
    if reached <= mark then
        return;
    end if;
`,
    ],
]);

/** Before it locks anything else. To look for the lowest reads what vacuum has left, so one that goes on does not. */
const keepAlive = rewritten('keep_session_alive', [
    [
        '    if json_array_length(begun) > 0 then\n',
        `    if not exists (select from scanwire.worker_sessions s where s.id = session_id and s.alive_until > at) then
        perform scanwire.lower_mark_of_flights();
    end if;

    if json_array_length(begun) > 0 then
`,
    ],
]);

const heartbeat = rewritten('heartbeat', [
    [
        '    mark bigint := (select l.last_value from scanwire.landed_flights l);\n',
        `    mark bigint;
`,
    ],
    [
        'spoken, begun, opens);\n',
        `spoken, begun, opens);
    mark := (select l.last_value from scanwire.landed_flights l);
`,
    ],
]);

/** Seconds since 1970 in the 32 bits that the number of a lock has, which are read without a sign. */
const seconds = [
    rewritten('store_delivery', [
        [
            'floor(extract(epoch from new.due_at))::integer',
            '((floor(extract(epoch from new.due_at))::bigint + 2147483648) % 4294967296 - 2147483648)::integer',
        ],
    ]),
    rewritten('raise_waiting_marks', [['    uncommitted integer;\n', '    uncommitted bigint;\n']]),
];

/**
 * What a worker is refused waits again, with the time that it had. Marks that somebody else is changing stay as they are: others may hold several, in another
 * order, and within five seconds all is looked through.
 */
const claim = rewritten('claim_attempts', [
    [
        `        where d.id = any (array[f.id]) and not f.holds
    )
`,
        `        where d.id = any (array[f.id]) and not f.holds
        returning d.exporter_id, d.priority, d.due_at, d.state
    ),
    lowered as (
        update scanwire.waiting_marks m
        set due_from = t.due_at
        from (
            select w.exporter_id, w.priority, b.due_at
            from (
                select r.exporter_id, r.priority, min(r.due_at) as due_at from moved r
                where r.state = 'pending'
                group by r.exporter_id, r.priority
            ) b
            join scanwire.waiting_marks w on w.exporter_id = any (array[b.exporter_id]) and w.priority = b.priority
            where w.due_from > b.due_at
            for no key update of w skip locked
        ) t
        where m.exporter_id = t.exporter_id and m.priority = t.priority
    )
`,
    ],
]);

const sql = [lower, raise, keepAlive, heartbeat, ...seconds, claim].join('\n');

export const marksLowered: Migration = { id: '0116-marks-lowered', sql };
