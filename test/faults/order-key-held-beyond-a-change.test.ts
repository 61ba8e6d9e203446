/** What ends for good while its exporter is told to skip holds its key no longer, whoever of both is the first to decide turns. */
import t from 'tap';
import { only, until } from '../../adapters/contract/assertions.ts';
import {
    at,
    BEGIN_WITHIN,
    forAll,
    holderOf,
    RULES,
    sampleEvent,
    sampleOutcome,
    success,
    WebhookBench,
} from '../../adapters/contract/webhooks/fixture.ts';
import { emptyWebhookStores } from '../adapters/postgres/webhooks/empty-webhook-stores.ts';
import { migratedPool } from '../support/migrated-database.ts';

const pool = await migratedPool(t, { max: 6 });

async function waiting(): Promise<number> {
    const { rows } = await pool.query(
        'select from pg_locks l join pg_stat_activity a using (pid) where a.datname = current_database() and not l.granted',
    );
    return rows.length;
}

t.test('lets a key go whose first fails for good after a change of its exporter has begun, and before it lets go', async (t) => {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const bench = new WebhookBench(empty);
    const { id } = await bench.addExporter({ ordered: true, afterExhausted: 'hold' });
    await bench.setTime(at(0));
    const events = Array.from({ length: 2 }, () => ({ ...forAll(sampleEvent()), orderKey: 'a' }));
    const handOut = { window: 10, breakerAfter: RULES.after, beginWithin: BEGIN_WITHIN };
    const [first, second] = await bench.deliveries.accept(events, { handOut });
    const failed = success(holderOf(only(first?.handedOut ?? [])), {
        begunAt: at(1),
        outcome: sampleOutcome('invalid_message'),
        next: { state: 'exhausted' },
        health: 'none',
    });
    await bench.setTime(at(10));

    // The change comes to a halt where it notes that it is to let go.
    const other = await pool.connect();
    await other.query('begin');
    await other.query('lock table scanwire.order_releases in access exclusive mode');
    const changed = bench.exporters.update(id, { afterExhausted: 'skip' });
    await until(async () => (await waiting()) === 1);
    let isOver = false;
    const ended = bench.deliveries.recordOutcomes([failed], RULES).finally(() => {
        isOver = true;
    });
    await until(async () => isOver || (await waiting()) === 2);
    await other.query('commit');
    other.release();
    t.match(await changed, { afterExhausted: 'skip' });
    await ended;

    const handedOut = [...(await bench.dispatchedIds({ now: at(20) })), ...(await bench.dispatchedIds({ now: at(30) }))];
    t.same(handedOut, second?.deliveries);
    t.equal((await pool.query('select from scanwire.order_releases')).rows.length, 0, 'and nothing is left to do');
});
