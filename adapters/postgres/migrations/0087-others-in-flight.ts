import type { Migration } from '../migrate.ts';
import { rewritten } from './0078-looked-up-by-key.ts';

/**
 * How much room there is at least is told from what is in flight, without a look at whose it is. All of it was taken off the room of the event's own
 * exporters, so that forty attempts of others at receivers that are slow or silent made each acceptance look at everything. Only their own is taken
 * off now; and an exporter with a late attempt is slow, and takes no part of what the quick ones share.
 */
const OWN_AND_OTHERS = [
    ['    flying bigint;\n', '    flying bigint;\n    flying_own bigint;\n    flying_beside bigint;\n'],
    [
        `select count(*), bool_or(f.late) into flying, late
        from (
            select d.exporter_id = any (receiving) and d.state = 'sending' and d.claimed_at < at - slow_after * interval '1 millisecond' as late`,
        `select count(*), count(*) filter (where f.own), count(*) filter (where not f.own and not f.late), bool_or(f.own and f.late)
        into flying, flying_own, flying_beside, late
        from (
            select
                d.exporter_id = any (receiving) as own,
                coalesce(d.state = 'sending' and d.claimed_at < at - slow_after * interval '1 millisecond', false) as late`,
    ],
    [
        `select
                least(
                    max_in_flight,
                    (2 * coalesce(sum((w.slots->>collectors[1])::integer), default_slots) - flying) / (cardinality(receiving) + flying)
                ) - flying
            into least_places
            from scanwire.worker_sessions w
            where w.alive_until > at;`,
        `select least(least(max_in_flight, greatest(1, r.room / (cardinality(receiving) + flying_beside))) - flying_own, r.room)
            into least_places
            from (
                select 2 * coalesce(sum((w.slots->>collectors[1])::integer), default_slots) - flying as room
                from scanwire.worker_sessions w
                where w.alive_until > at
            ) r;`,
    ],
] as const;

const sql = ['accept_single_event', 'accept_single_chosen_event'].map((name) => rewritten(name, OWN_AND_OTHERS)).join('\n');

export const othersInFlight: Migration = { id: '0087-others-in-flight', sql };
