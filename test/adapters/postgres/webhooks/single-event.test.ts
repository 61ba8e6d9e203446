import t from 'tap';
import { at, forAll, RULES, sampleEvent, sampleExporter, WebhookBench } from '../../../../adapters/contract/webhooks/fixture.ts';
import type { Executor } from '../../../../lib/transaction.ts';
import { SHARES } from '../../../../lib/webhooks/dispatching/slot-shares.ts';
import { migratedPool } from '../../../support/migrated-database.ts';
import { seeded } from '../../../support/seeded.ts';
import { emptyWebhookStores } from './empty-webhook-stores.ts';

const pool = await migratedPool(t, { max: 4 });

const [ROUNDS, EVENTS] = [80, 8];

/** The exporters of the event that have places, by the rule of dispatch. */
async function withPlaces(window: number, now: Date): Promise<readonly string[]> {
    const { rows } = await pool.query<{ id: string }>(
        `select exporter_id as id
        from scanwire.rooms_of((select array_agg(id) from scanwire.exporters where type = 'investigation'), $1, $2, $3, $4, $5)
        join scanwire.exporters e on e.id = exporter_id and e.type = 'investigation'
        where steady and share > flying and pool_room > 0 order by exporter_id`,
        [now, window, RULES.after, SHARES.defaultSlots, SHARES.slowAfter],
    );
    return rows.map(({ id }) => id);
}

/** Exporters that do not want the events which are counted, each with so many deliveries in flight. */
async function flyBeside(bench: WebhookBench, exporters: number, each: number): Promise<void> {
    await Promise.all(Array.from({ length: exporters }, () => bench.addExporter()));
    await pool.query(`update scanwire.exporters set type = 'investigation_legacy'`);
    await bench.acceptAtOnce(each, { window: 1_000 }, { types: ['investigation_legacy'] });
}

t.test('an event that is accepted alone is handed out to just those who have places by the rule of dispatch', async (t) => {
    const random = seeded(11);
    const oneOf = (most: number): number => 1 + Math.floor(random() * most);
    const empty = emptyWebhookStores(pool);
    const bench = new WebhookBench(empty);
    let [given, refused] = [0, 0];
    for (let round = 0; round < ROUNDS; round += 1) {
        await empty.start();
        await bench.setTime(at(0));
        const [window, slots, count] = [oneOf(8), oneOf(random() < 0.6 ? 4 : 60), oneOf(3)];
        if (round % 3 > 0) {
            await flyBeside(bench, oneOf(20), oneOf(2));
            await pool.query(`update scanwire.deliveries set state = 'sending', claimed_at = $1 where seq % 2 = 0`, [
                at(-oneOf(2) * SHARES.slowAfter),
            ]);
        }
        await Promise.all(Array.from({ length: count }, () => bench.addExporter()));
        await pool.query('update scanwire.exporters set answers_slowly = seq % $1 = 0', [random() < 0.5 ? 1_000 : 2]);
        await bench.deliveries.keepAlive({ id: crypto.randomUUID(), process: '{}', slots: { default: slots } }, 60_000_000);
        for (let event = 0; event < EVENTS; event += 1) {
            // In some rounds those in flight become late.
            const now = at(round % 2 === 0 ? event * 2 * SHARES.slowAfter : 0);
            const expected = await withPlaces(window, now);
            const [accepted] = await bench.acceptAtOnce(1, { now, window });
            const handedOut = (accepted?.handedOut ?? []).map(({ exporterId }) => exporterId).sort();
            t.strictSame(handedOut, expected, `window ${window}, ${slots} slots, event ${event}`);
            given += handedOut.length;
            refused += count - handedOut.length;
            // Else nothing more would be handed out to them at all.
            await pool.query(`delete from scanwire.deliveries where state = 'pending'`);
            if (round % 2 === 0) {
                await pool.query(`update scanwire.deliveries set state = 'sending', claimed_at = $1 where state = 'queued'`, [now]);
            }
        }
    }
    t.ok(given > EVENTS && refused > EVENTS, `${given} handed out, ${refused} not`);
});

t.test('looks at nobody else while others have much in flight, and it has nothing', async (t) => {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const bench = new WebhookBench(empty);
    await flyBeside(bench, 100, 3);
    const { id } = await bench.addExporter();
    await pool.query('update scanwire.exporters set answers_slowly = false');
    await pool.query('alter function scanwire.rooms_of rename to rooms_elsewhere');
    t.teardown(() => pool.query('alter function scanwire.rooms_elsewhere rename to rooms_of'));
    const [accepted] = await bench.acceptAtOnce(1);
    t.strictSame(
        accepted?.handedOut.map(({ exporterId }) => exporterId),
        [id],
    );
});

t.test('counts what is in flight to its end, however much there are slots for', async (t) => {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const bench = new WebhookBench(empty);
    await bench.addExporter();
    await bench.setTime(at(0));
    await pool.query('update scanwire.exporters set answers_slowly = false');
    await bench.deliveries.keepAlive({ id: crypto.randomUUID(), process: '{}', slots: { default: 50_000 } }, 60_000_000);
    const window = 600;
    await bench.acceptAtOnce(window, { window });
    const [accepted] = await bench.acceptAtOnce(1, { window });
    t.strictSame(accepted?.handedOut, []);
});

t.test('is not handed out before what has waited for longer, nor at the last place beside a retry', async (t) => {
    for (const [priority, window] of [
        [1, 10],
        [2, 1],
    ] as const) {
        const empty = emptyWebhookStores(pool);
        await empty.start();
        const bench = new WebhookBench(empty);
        await bench.addExporter();
        await bench.publish();
        await pool.query('update scanwire.deliveries set priority = $1', [priority]);
        const [accepted] = await bench.acceptAtOnce(1, { window });
        t.strictSame([accepted?.deliveries.length, accepted?.handedOut], [1, []]);
    }
});

t.test('is handed out beside retries that are due, as long as an eighth of the window is free, however many are in flight', async (t) => {
    const [window, slots] = [40, 40];
    for (const [inFlight, granted] of [
        // Few places, as far as their number alone tells.
        [7, 1],
        [window - window / 8 - 1, 1],
        [window - window / 8, 0],
    ] as const) {
        const empty = emptyWebhookStores(pool);
        await empty.start();
        const bench = new WebhookBench(empty);
        await bench.addExporter();
        await pool.query('update scanwire.exporters set answers_slowly = false');
        await bench.deliveries.keepAlive({ id: crypto.randomUUID(), process: '{}', slots: { default: slots } }, 60_000_000);
        await bench.acceptAtOnce(inFlight, { window });
        await bench.publish();
        await pool.query("update scanwire.deliveries set priority = 2 where state = 'pending'");
        const [accepted] = await bench.acceptAtOnce(1, { window });
        t.equal(accepted?.handedOut.length, granted, `${inFlight} in flight`);
    }
});

t.test('accepts many events in one statement of a transaction of the application, and makes its commit heard by another', async (t) => {
    const empty = emptyWebhookStores(pool);
    await empty.start();
    const { exporters, deliveries } = empty;
    await exporters.insert(sampleExporter());
    const client = await pool.connect();
    t.teardown(() => client.release());
    await client.query('begin');
    for (const count of [1, 100]) {
        const asked: string[] = [];
        const tx: Executor = {
            query(text, values) {
                asked.push(text);
                return client.query(text, values as unknown[]) as never;
            },
        };
        const accepted = await deliveries.accept(
            Array.from({ length: count }, () => forAll(sampleEvent())),
            { tx },
        );
        t.equal(accepted.flatMap((one) => one.deliveries).length, count);
        t.match(asked, [/from scanwire\.accept_events\(/, /^\s*select pg_notify\(/], 'however many there are');
        t.equal(asked.length, 2);
    }
    await client.query('commit');
});
