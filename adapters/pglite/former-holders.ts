import type { Executor } from '../../lib/transaction.ts';
import { ENDED_PROCESS } from '../../lib/webhooks/dispatching/worker-session.ts';

/** Done where the schema knows of leases. */
const END_LEASES = `do $$ begin
    update scanwire.workspaces set import_until = '-infinity' where import_id is not null;
exception when invalid_schema_name or undefined_table or undefined_column then
    null;
end $$`;

/**
 * Done where the schema knows of sessions. They stay, as those of a process that has ended: whoever begins to send ends them, and knows so that
 * there is something to free.
 */
const END_SESSIONS = `do $$ begin
    update scanwire.worker_sessions set alive_until = '-infinity', process = '${ENDED_PROCESS}';
exception when invalid_schema_name or undefined_table then
    null;
end $$`;

/** Ends what former holders of a folder had under way, imports and claims of deliveries: nobody but us has it open, so they are gone. */
export async function endFormerHolders(database: Executor): Promise<void> {
    await database.query(END_LEASES);
    await database.query(END_SESSIONS);
}
