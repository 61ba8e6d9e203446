import t, { type Test } from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { failure, forAll, sampleEvent, sampleExporter, success } from '../../../../adapters/contract/webhooks/fixture.ts';
import { migrate, postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import { claimsPlannedOnce } from '../../../../adapters/postgres/migrations/0104-claims-planned-once.ts';
import { migrations } from '../../../../adapters/postgres/migrations/index.ts';
import type { DeliveryFilter } from '../../../../lib/webhooks/deliveries/deliveries.ts';
import { BREAKER, HAND_OUT } from '../../../plans/way.ts';
import { databases, type OpenDatabase } from '../databases.ts';

const DAY = 86_400_000;
const FILTERS: readonly DeliveryFilter[] = [
    {},
    { state: 'delivered' },
    { state: 'exhausted' },
    { kind: 'ours' },
    { kind: 'ours', state: 'delivered' },
    { outcome: 'delivered' },
    { outcome: 'connect_refused' },
];
const BEFORE = migrations.slice(
    0,
    migrations.findIndex(({ id }) => id === '0076-counts'),
);

/** What a dispatch and a claim of today ask for, which is of later migrations. */
const ASKED_SINCE = `create table scanwire.order_releases (); ${claimsPlannedOnce.sql}`;
const GOES_BEFORE = 'drop table scanwire.order_releases; drop function scanwire.claimed_messages';

/** What the numbers say with all changes, and what there is. */
const NUMBERS = `
select n.exporter_id, n.state, n.code, n.kind, sum(n.count)::integer as count
from (
    select c.exporter_id, c.state, c.code, c.kind, c.count from scanwire.delivery_counts c
    union all
    select c.exporter_id, c.state, coalesce(c.code, ''), c.kind, c.count from scanwire.delivery_count_changes c
) n
group by n.exporter_id, n.state, n.code, n.kind
having sum(n.count) <> 0
order by n.exporter_id, n.state, n.code, n.kind`;
const KEPT = `
select d.exporter_id, d.state, coalesce(d.last_code, '') as code, d.kind, count(*)::integer as count
from scanwire.deliveries d
where d.state not in ('pending', 'queued', 'sending', 'held')
group by d.exporter_id, d.state, coalesce(d.last_code, ''), d.kind
order by d.exporter_id, d.state, coalesce(d.last_code, ''), d.kind`;

async function deployed(t: Test, open: () => Promise<OpenDatabase>) {
    const { pool, stop } = await open();
    t.after(stop);
    const { exporters, deliveries } = postgresWebhooks({ pool });

    /** Accepts one of each of these kinds and hands them out, and says what their exporter has answered. */
    async function send(answer: typeof success, kinds: readonly string[] = ['ours', 'theirs']): Promise<readonly string[]> {
        await deliveries.accept(kinds.map((kind) => forAll(sampleEvent({ kind }))));
        const { handedOut } = await deliveries.dispatch({ ...HAND_OUT, limit: 100 });
        const requests = handedOut.map(({ deliveryId, reservation }) => {
            return { deliveryId, token: deliveryId, duration: 60_000, reservation: present(reservation).token };
        });
        const claims = (await deliveries.claim(requests, null)).filter((claim) => claim !== null);
        await deliveries.recordOutcomes(
            claims.map((claim) => answer(claim)),
            BREAKER,
        );
        return claims.map(({ deliveryId }) => deliveryId);
    }

    /** @returns Whether there was more. */
    const fold = async (rows = 5_000): Promise<boolean> => {
        const found = await pool.query<{ more: boolean }>('select scanwire.fold_delivery_counts($1) as more', [rows]);
        return found.rows[0]?.more === true;
    };
    const numbersAreRight = async (what: string): Promise<void> => {
        t.strictSame((await pool.query(NUMBERS)).rows, (await pool.query(KEPT)).rows, what);
    };
    const countsAsListed = async (max = 100): Promise<void> => {
        for (const filter of FILTERS) {
            const found = await deliveries.list({ ...filter, limit: 100 });
            t.equal(await deliveries.count(filter, max), found.length, JSON.stringify(filter));
        }
    };
    return { pool, exporters, deliveries, send, fold, countsAsListed, numbersAreRight };
}

const inVain: typeof success = (holder) => failure(holder, 0, { next: { state: 'exhausted' } });

for (const { name, open, openMigrated } of databases) {
    t.test(`knows how many have ended, however many they are, on ${name}`, async (t) => {
        const { pool, exporters, deliveries, send, countsAsListed, numbersAreRight } = await deployed(t, openMigrated);
        await exporters.insert(sampleExporter());
        const delivered = [
            ...(await send(success)),
            ...(await send(success, ['ours', 'ours', 'ours'])),
            ...(await send(success, ['ours'])),
        ];
        await send(inVain);
        // of two exporters in one statement
        const other = sampleExporter();
        await exporters.insert(other);
        await send(success);
        await numbersAreRight('as they have ended');
        await countsAsListed(3);
        await deliveries.replay(present(delivered[0]));
        await numbersAreRight('once one is replayed');
        await exporters.remove(other.id);
        for (let sweep = 0; sweep < 10; sweep += 1) {
            await deliveries.sweep({ requeueAfter: 60_000, limit: 100 });
        }
        t.strictSame((await pool.query('select from scanwire.delivery_count_changes')).rows, [], 'sweeps fold');
        await numbersAreRight('once folded');
        await countsAsListed(3);
    });

    t.test(`counts no more what is removed for its age, on ${name}`, async (t) => {
        const { pool, exporters, deliveries, send, fold, countsAsListed, numbersAreRight } = await deployed(t, openMigrated);
        await exporters.insert(sampleExporter());
        await send(success);
        await fold();
        await send(inVain);
        let removed = 0;
        for await (const expired of present(deliveries.retention).expire(-DAY)) {
            removed += expired.deliveries;
        }
        t.equal(removed, 4);
        await countsAsListed();
        await numbersAreRight('of what is left');
        await fold();
        t.strictSame((await pool.query('select from scanwire.delivery_counts')).rows, [], 'keeps no number of none');
        await send(success);
        await countsAsListed();
    });

    t.test(`counts what is from before step by step, whatever becomes of it meanwhile, on ${name}`, async (t) => {
        const { pool, exporters, deliveries, send, fold, countsAsListed, numbersAreRight } = await deployed(t, open);
        await migrate(pool, { steps: BEFORE });
        await pool.query(ASKED_SINCE);
        await exporters.insert(sampleExporter());
        const old = [...(await send(success)), ...(await send(inVain)), ...(await send(success)), ...(await send(inVain))];
        await deliveries.accept([forAll(sampleEvent({ kind: 'ours' }))]);
        await pool.query(GOES_BEFORE);
        await migrate(pool);
        await countsAsListed();
        t.equal(await deliveries.count({ state: 'delivered' }, 3), 3, 'one by one until all are counted');

        await deliveries.replay(present(old[0]));
        await deliveries.discard?.(present(old[6]));
        t.ok(await fold(3), 'the first three');
        await countsAsListed();
        await deliveries.discard?.(present(old[2]));
        await deliveries.discard?.(present(old[3]));
        await pool.query('delete from scanwire.deliveries where id = any ($1)', [[old[1], old[5]]]);
        await send(success);
        t.ok(await fold(3), 'three more');
        await deliveries.replay(present(old[4]));
        while (await fold(3)) {
            await countsAsListed();
        }
        await numbersAreRight('once all are counted');
        await countsAsListed(8);
        t.equal(await deliveries.count({ state: 'delivered' }, 1), (await deliveries.list({ state: 'delivered', limit: 9 })).length);

        await pool.query('create publication everything for all tables');
        await pool.query('delete from scanwire.deliveries where id = $1', [old[7]]);
        await send(inVain);
        await numbersAreRight('from then on');
        await fold();
        await numbersAreRight('where tables are replicated');

        await pool.query(`update scanwire.deliveries set state = 'delivered' where state = 'pending'`);
        await pool.query('select scanwire.recount_deliveries()');
        t.equal(await deliveries.count({ state: 'delivered' }, 3), 3, 'one by one again');
        while (await fold(3)) {
            await countsAsListed();
        }
        await numbersAreRight('counted anew, past what the triggers saw');
        await fold();
        await numbersAreRight('and folded');
    });

    t.test(`counts beside the numbers what has no kind of its own, on ${name}`, async (t) => {
        const { pool, exporters, deliveries, send, fold, countsAsListed } = await deployed(t, open);
        await migrate(pool, { steps: BEFORE });
        await pool.query(ASKED_SINCE);
        await exporters.insert(sampleExporter());
        const old = [...(await send(success)), ...(await send(success)), ...(await send(inVain))];
        const [waiting] = await deliveries.accept([forAll(sampleEvent({ kind: 'ours' }))]);
        const kindless = [old[0], old[4], waiting?.deliveries[0]];
        await pool.query('update scanwire.deliveries set kind = null, accepted_at = null where id = any ($1)', [kindless]);
        await pool.query(GOES_BEFORE);
        await migrate(pool);
        while (await fold());
        await countsAsListed(4);
        t.equal(await deliveries.count({}, 4), 7);
        t.equal(await deliveries.count({ state: 'delivered' }, 3), 4);
        t.equal(await deliveries.count({ state: 'delivered' }, 2), 2, 'where those are as many, one by one');
        await deliveries.replay(present(old[0]));
        await countsAsListed(4);
    });
}
