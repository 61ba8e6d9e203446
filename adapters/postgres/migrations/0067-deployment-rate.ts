import type { Migration } from '../migrate.ts';

/** A rate for all exporters together. Who has none calls hand_out_due_deliveries as before. */
const sql = `
-- As before, but a clock that is set back stops no rate: what is used up until more than a second from now was used up before the clock was set back.
create or replace function scanwire.unpaid_of(exporter uuid, rate integer, at timestamptz)
returns integer
language plpgsql
stable
as $$
begin
    return floor(rate * least(1, extract(epoch from at - coalesce(
        (select p.paid_until from scanwire.exporter_rates p where p.exporter_id = exporter and p.paid_until <= at + interval '1 second'),
        at - interval '1 second'
    ))));
end
$$;

create or replace function scanwire.pay_rate(exporter uuid, rate integer, at timestamptz, handed_out bigint)
returns void
language plpgsql
as $$
declare
    second_ago timestamptz := at - interval '1 second';
    price interval := handed_out * interval '1 second' / rate;
begin
    insert into scanwire.exporter_rates as p (exporter_id, paid_until)
    values (exporter, second_ago + price)
    on conflict (exporter_id) do update
    set paid_until = greatest(case when p.paid_until <= at + interval '1 second' then p.paid_until end, second_ago) + price;
end
$$;

-- As hand_out_due_deliveries, which it calls, but no more in a second than the rate of the deployment allows; tests count, and come first. It is used up
-- like that of an exporter, of one that there is not. Where it is used up, what is left waits for nobody.
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
    told bigint;
begin
    -- as hand_out_due_deliveries does, so that nobody else hands out what is left
    perform pg_advisory_xact_lock(hashtextextended('scanwire.dispatch_deliveries', 0));
    at := scanwire.now();
    unpaid := scanwire.unpaid_of(everybody, rate, at);
    if unpaid < 1 then
        waits_for := '{}';
        return next;
        return;
    end if;

    return query
    with due as materialized (
        select * from scanwire.hand_out_due_deliveries(
            max_in_flight, breaker_after, least(max_rows, unpaid), default_slots, slow_after, begin_within
        ) with ordinality
    )
    select
        d.delivery_id, d.collector, d.attempt, d.single, d.exporter_id, d.token, d.begin_by, d.generation, d.settings, d.round,
        -- the first row is no delivery
        case when unpaid < max_rows and (select count(*) - 1 from due) = unpaid then '{}' else d.waits_for end
    from due d
    order by d.ordinality;
    get diagnostics told = row_count;
    if told > 1 then
        perform scanwire.pay_rate(everybody, rate, at, told - 1);
    end if;
end
$$;
`;

export const deploymentRate: Migration = { id: '0067-deployment-rate', sql };
