import type { Migration } from '../migrate.ts';

/** A rate for all exporters together. Who has none calls hand_out_due_deliveries as before. */
const sql = `
-- As hand_out_due_deliveries, which it calls, but no more in a second than the rate of the deployment allows; tests count, and come first. It is used up
-- like that of an exporter, of one that there is not. What is left because of it is not left to be asked for once more.
create function scanwire.hand_out_at_rate(
    max_in_flight integer, breaker_after integer, max_rows integer, default_slots integer, slow_after double precision, begin_within interval,
    rate integer
)
returns table (
    delivery_id uuid, collector text, attempt integer, single boolean,
    exporter_id uuid, token text, begin_by timestamptz, generation integer, settings integer, round integer, waits_for uuid[]
)
language plpgsql
set enable_seqscan = off
set jit = off
set plan_cache_mode = force_generic_plan
as $$
#variable_conflict use_column
declare
    everybody constant uuid := '00000000-0000-0000-0000-000000000000';
    at timestamptz;
    unpaid integer;
    handed_out bigint;
begin
    -- as hand_out_due_deliveries does, so that nobody else hands out what is left
    perform pg_advisory_xact_lock(hashtextextended('scanwire.dispatch_deliveries', 0));
    at := scanwire.now();
    -- a clock that was set back
    update scanwire.exporter_rates p set paid_until = at where p.exporter_id = everybody and p.paid_until > at;
    unpaid := scanwire.unpaid_of(everybody, rate, at);
    if unpaid < 1 then
        waits_for := '{}';
        return next;
        return;
    end if;

    return query
    select
        h.delivery_id, h.collector, h.attempt, h.single, h.exporter_id, h.token, h.begin_by, h.generation, h.settings, h.round,
        case when unpaid >= max_rows then h.waits_for else '{}' end
    from scanwire.hand_out_due_deliveries(
        max_in_flight, breaker_after, least(max_rows, unpaid), default_slots, slow_after, begin_within
    ) h;
    get diagnostics handed_out = row_count;
    if handed_out > 1 then
        perform scanwire.pay_rate(everybody, rate, at, handed_out - 1);
    end if;
end
$$;
`;

export const deploymentRate: Migration = { id: '0067-deployment-rate', sql };
