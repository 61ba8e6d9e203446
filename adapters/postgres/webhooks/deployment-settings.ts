import type { Executor } from '../../../lib/transaction.ts';
import type { Deployment, SettingsStore } from '../../../lib/webhooks/deployment-settings.ts';
import { OWNER_SETTINGS } from '../../../lib/webhooks/setting-values.ts';
import { prepared } from '../prepared.ts';

const COLUMNS = 'id, generation, settings';

const READ = prepared(`select ${COLUMNS} from scanwire.deployment`);

/** Of several processes that begin at once, only the first changes anything. */
const BEGIN = 'insert into scanwire.deployment default values on conflict do nothing';

/** What decides nothing of what is sent. */
const OF_OWNERS = `array[${OWNER_SETTINGS.map((name) => `'${name}'`).join(', ')}]`;

const DECLARE = `
update scanwire.deployment
set
    generation = generation + ((settings - ${OF_OWNERS}) is distinct from ($1::text::jsonb - ${OF_OWNERS}))::integer,
    settings = $1::text::jsonb
returning ${COLUMNS}`;

/** The row of `scanwire.deployment`. */
export function settings(db: Executor): SettingsStore {
    async function begun(statement: string, values?: unknown[]): Promise<Deployment> {
        for (;;) {
            const { rows } = await db.query<Deployment>(statement, values);
            if (rows[0] !== undefined) {
                return rows[0];
            }
            await db.query(BEGIN);
        }
    }

    return {
        read: () => begun(READ),
        declare: (declared) => begun(DECLARE, [JSON.stringify(declared)]),
    };
}
