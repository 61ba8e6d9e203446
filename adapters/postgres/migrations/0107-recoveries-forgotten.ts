import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/*
 * What was tried before an exporter recovered is due at once, whenever it would be otherwise. So each hand-out read all that waits for another try, for as long as
 * the exporter did not fail again, and could not say when something will be due. Now that ends with the last of it.
 */

const forget = `
-- Forgets of these exporters that they have recovered, once nothing is left that was tried before, neither waiting nor in flight. It waits for nobody.
create function scanwire.forget_recoveries(exporters uuid[])
returns void
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
    update scanwire.exporters x
    set recovered_at = null
    where x.id = any (array(
        select e.id from scanwire.exporters e
        where
            e.id = any (exporters) and e.recovered_at is not null
            and (
                select d.seq from scanwire.deliveries d
                where d.stage = 'waiting' and d.exporter_id = e.id and d.queued_at < e.recovered_at
                limit 1
            ) is null
            and (
                select d.seq from scanwire.deliveries d
                where
                    d.stage = 'in flight' and d.flight >= (select l.last_value from scanwire.landed_flights l)
                    and d.exporter_id = e.id and d.queued_at < e.recovered_at
                limit 1
            ) is null
        for no key update of e skip locked
    ));
end
$$;
`;

/** With the look through all that waits, which comes every five seconds: as that, it may take long beside an old snapshot. */
const handOut = rewritten('hand_out_due_deliveries', [
    [
        '        order by q.place\n    );\n',
        `        order by q.place
    );
    if looks_through then
        perform scanwire.forget_recoveries(due_exporters);
    end if;
`,
    ],
]);

export const recoveriesForgotten: Migration = { id: '0107-recoveries-forgotten', sql: [forget, handOut].join('\n') };
