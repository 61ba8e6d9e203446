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

const sql = [lower, raise, keepAlive, heartbeat].join('\n');

export const marksLowered: Migration = { id: '0116-marks-lowered', sql };
