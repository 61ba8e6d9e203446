import type { SqlMigration } from '../migrate.ts';
import { holdingAcceptance } from './0012-subscriptions.ts';

/**
 * Events for an exporter that was stopped by an outcome are kept as `held` deliveries, which nothing sends until somebody replays them.
 */
const sql = `
alter table scanwire.deliveries
    drop constraint deliveries_state_check,
    add constraint deliveries_state_check
        check (state in ('pending', 'queued', 'sending', 'delivered', 'exhausted', 'poisoned', 'cancelled', 'erased', 'held')) not valid;

create or replace trigger exporters_subscribed
after insert on scanwire.exporters
for each row
when (new.selective and (new.state = 'running' or new.stop_reason is not null))
execute function scanwire.next_subscriptions();

create or replace trigger exporters_unsubscribed
after delete on scanwire.exporters
for each row
when (old.selective and (old.state = 'running' or old.stop_reason is not null))
execute function scanwire.next_subscriptions();

create or replace trigger exporters_subscription_changed
after update on scanwire.exporters
for each row
when (
    (
        (old.selective and (old.state = 'running' or old.stop_reason is not null))
        or (new.selective and (new.state = 'running' or new.stop_reason is not null))
    )
    and (old.state, old.stop_reason, old.type, old.kinds::text, old.filter::text, old.owner, old.format, old.template::text)
    is distinct from
    (new.state, new.stop_reason, new.type, new.kinds::text, new.filter::text, new.owner, new.format, new.template::text)
)
execute function scanwire.next_subscriptions();

-- Nothing of them was sent, and nothing will be.
create function scanwire.cancel_held_deliveries()
returns trigger
language plpgsql
set enable_seqscan = off
as $$
begin
    update scanwire.deliveries d set state = 'cancelled', finished_at = scanwire.now(), collector = old.collector
    where d.stage = 'failed' and d.exporter_id = old.id and d.state = 'held';
    return null;
end
$$;

create trigger exporters_held
after delete on scanwire.exporters
for each row
execute function scanwire.cancel_held_deliveries();
${holdingAcceptance}`;

export const heldDeliveries: SqlMigration = { id: '0025-held-deliveries', sql };
