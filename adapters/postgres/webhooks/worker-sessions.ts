import type { Executor } from '../../../lib/transaction.ts';
import type { DeliveryStore } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Session } from '../../../lib/webhooks/dispatching/worker-session.ts';
import type { Time } from '../database.ts';
import { prepared } from '../prepared.ts';

/**
 * `$1` id, `$2` process, `$3` slots, `$4` milliseconds, `$5` generation of the settings, or null, `$6` the time up to which it has said
 * what it has begun, or null, `$7` a JSON array of that, `$8` whether it opens sealed URLs.
 */
const KEEP_ALIVE: string = prepared('select scanwire.keep_alive($1, $2, $3, $4, $5, $6, $7, $8) as now');

/** The sessions of workers, under which they hold what they send. */
export function sessionStore(db: Executor): Pick<DeliveryStore, 'keepAlive' | 'sessions' | 'endSessions'> {
    return {
        async keepAlive({ id, process, slots, generation = null, opensUrls = false }, duration, begun = { upTo: null, attempts: [] }) {
            const named = begun.attempts.map(({ deliveryId, token, claimedAt, duration }) => {
                return { id: deliveryId, token, claimed_at: claimedAt, duration };
            });
            const parameters = [id, process, JSON.stringify(slots), duration, generation, begun.upTo, JSON.stringify(named), opensUrls];
            const { rows } = await db.query<{ now: Time }>(KEEP_ALIVE, parameters);
            return new Date(rows[0]?.now as Time);
        },

        async sessions() {
            const { rows } = await db.query<Required<Session>>(
                `select id, process, slots, opens_urls as "opensUrls" from scanwire.worker_sessions where alive_until > scanwire.now()
                union all
                select id, 'of a version without sessions', '{}', false from scanwire.sessionless where until > scanwire.now()`,
            );
            return rows;
        },

        async endSessions(ids) {
            await db.query('delete from scanwire.worker_sessions where id = any ($1::uuid[])', [ids]);
        },
    };
}
