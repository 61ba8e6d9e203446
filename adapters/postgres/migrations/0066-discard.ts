import type { Migration } from '../migrate.ts';

/** Ends a delivery that somebody does not want to be sent any more. */
const sql = `
-- Whether it has ended by this. What is cancelled gives up its place in the order of its key, but tells of no turn: all of an exporter that is removed are.
create function scanwire.discard_delivery(discarded uuid)
returns boolean
language plpgsql
set enable_seqscan = off
set jit = off
as $$
declare
    exporter uuid;
    key text;
begin
    update scanwire.deliveries d
    set state = 'cancelled', finished_at = scanwire.now(), token = null, begin_by = null
    where d.id = discarded and d.state in ('pending', 'exhausted', 'poisoned', 'held')
    returning d.exporter_id, d.order_key into exporter, key;

    if not found then
        return false;
    end if;
    if key is not null then
        perform scanwire.give_turns(json_build_array(json_build_array(exporter, key)));
    end if;
    return true;
end
$$;
`;

export const discard: Migration = { id: '0066-discard', sql };
