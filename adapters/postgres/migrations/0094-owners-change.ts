import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * An exporter gets another owner only while nothing is kept of it that its owner could be shown. Whoever accepts an event keeps the row from being
 * locked here until that is committed, and then it is seen; who comes later waits for the change, and looks at the owner of the changed row. The
 * update of another owner changes no row where it must not be.
 */
const trigger = `
create function scanwire.change_owner() returns trigger
language plpgsql
set enable_seqscan = off
set jit = off
as $$
begin
    perform from scanwire.exporters e where e.id = old.id for update;
    -- Those of tests have the priority 0 for good.
    if
        exists (select from scanwire.deliveries d where d.exporter_id = old.id and d.priority > 0)
        or exists (select from scanwire.replays r where r.exporter_id = old.id)
    then
        return null;
    end if;

    new.generation := old.generation + 1;
    return new;
end
$$;

create trigger exporters_owner
before update on scanwire.exporters
for each row
when (old.owner is distinct from new.owner)
execute function scanwire.change_owner();
`;

/**
 * Nothing goes to an exporter of another owner. Whoever chose it before it was given to its owner waits for its row, of which such conditions are judged
 * anew: the revision is that of before.
 */
const ofOwner = (owner: string): string => `(e.owner is null or e.owner = ${owner})`;

const ofSeveral = ['accept_chosen_events', 'accept_ordered_events'].map((name) =>
    rewritten(name, [
        ['s.*\n        from input i\n', 's.*, i.owner\n        from input i\n'],
        ['e.selective, e.stop_reason', 'e.selective, e.owner, e.stop_reason'],
        ['on e.id = c.exporter_id and', `on e.id = c.exporter_id and ${ofOwner('c.owner')} and`],
    ]),
);

const ofOne = rewritten('accept_single_chosen_event', [['or e.id = any (chosen)', `or e.id = any (chosen) and ${ofOwner('event_owner')}`]]);

export const ownersChange: Migration = { id: '0094-owners-change', sql: [trigger, ...ofSeveral, ofOne].join('\n') };
