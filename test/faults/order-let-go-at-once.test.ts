import { randomUUID } from 'node:crypto';
import t, { type Test } from 'tap';
import { forAll, sampleEvent, sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { deliveries } from '../../adapters/postgres/webhooks/deliveries.ts';
import { LET_GO } from '../../adapters/postgres/webhooks/dispatch.ts';
import { exporters } from '../../adapters/postgres/webhooks/exporters.ts';
import type { Executor } from '../../lib/transaction.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { databases, type TestedDatabase } from '../adapters/postgres/databases.ts';
import { HAND_OUT } from '../plans/way.ts';

/** Waiting for their turn: many pieces, and no whole number of them. */
const WAITING = 2_957;
/** As many as the dispatcher takes with a statement. */
const BATCH = 500;
const DISPATCH = { ...HAND_OUT, window: 10_000, limit: BATCH };
/** More dispatches than all pieces need. */
const MOST = 3 * (WAITING / LET_GO.step);

/** Ends deliveries `$1` for good, whatever becomes of their attempts. */
const FAIL = `update scanwire.deliveries set state = 'exhausted', finished_at = scanwire.now(), token = null where id = any ($1)`;

/** What there is before and after a statement. */
interface Left {
    readonly waiting: number;
    readonly places: number;
}

/** An ordered exporter, and a process whose statements are counted: `changed` has what each of them took away. `start` begins another one. */
async function deployment(t: Test, database: TestedDatabase, settings: object) {
    const { pool, stop } = await database.openMigrated();
    t.teardown(stop);
    const counted: Left[] = [];
    const left = async (): Promise<Left> => {
        const { rows } = await pool.query<Left>(`select
            (select count(*) from scanwire.deliveries d where d.stage = 'waiting' and d.priority = 3)::integer as waiting,
            (select count(*) from scanwire.order_places)::integer as places`);
        return rows[0] as Left;
    };
    const control = { fails: (_sql: string): boolean => false };
    const start = () => {
        const counting: Executor = {
            async query<Row>(sql: string, values?: unknown[]) {
                if (control.fails(sql)) {
                    throw new Error('The process has ended');
                }
                const result = await pool.query<Row>(sql, values);
                counted.push(await left());
                return result;
            },
        };
        return { exporters: exporters(counting), deliveries: deliveries(counting) };
    };
    const first = start();
    const exporter = sampleExporter({ id: randomUUID(), ordered: true, ...settings });
    await first.exporters.insert(exporter);
    await first.deliveries.keepAlive({ id: randomUUID(), process: 'one', slots: { [exporter.collector]: 20_000 } }, 1_000_000);
    const accept = async (keys: readonly string[]): Promise<readonly string[]> => {
        const ids: string[] = [];
        for (let next = 0; next < keys.length; next += BATCH) {
            const events = keys.slice(next, next + BATCH).map((orderKey) => ({ ...forAll(sampleEvent()), orderKey }));
            const accepted = await first.deliveries.accept(events, { handOut: HAND_OUT });
            ids.push(...accepted.flatMap((one) => one.deliveries));
        }
        return ids;
    };
    const changed = (): readonly Left[] =>
        counted.slice(1).map(({ waiting, places }, index) => {
            const before = counted[index] as Left;
            return { waiting: before.waiting - waiting, places: before.places - places };
        });
    return { pool, id: exporter.id, start, accept, left, changed, control, forget: () => counted.splice(0, counted.length - 1) };
}

/** Dispatches as a process does, until nothing is left to go on with, or so many times. */
async function dispatchAll({ deliveries }: { readonly deliveries: DeliveryStore }, times = MOST): Promise<readonly string[]> {
    const ids: string[] = [];
    for (let done = 0; done < times; done += 1) {
        const { handedOut, goOnIn } = await deliveries.dispatch(DISPATCH);
        ids.push(...handedOut.map(({ deliveryId }) => deliveryId));
        if (handedOut.length === 0 && goOnIn === undefined) {
            break;
        }
    }
    return ids;
}

for (const database of databases) {
    t.test(
        `an exporter that is not ordered any more lets go what waits in pieces, whoever is left to do so, on ${database.name}`,
        async (t) => {
            const self = await deployment(t, database, {});
            const [first, ...waiting] = await self.accept(Array(WAITING + 1).fill('one'));
            t.strictSame(await self.left(), { waiting: WAITING, places: WAITING + 1 });
            self.forget();
            const dying = self.start();
            t.match(await dying.exporters.update(self.id, { ordered: false }), { ordered: false });
            const [later = ''] = await self.accept(['one']);
            const sent = [...(await dispatchAll(dying, 5))];
            t.ok(sent.includes(later), 'what comes next waits for none of them');
            self.control.fails = (sql) => sql.includes('let_order_go');
            await t.rejects(dying.deliveries.dispatch(DISPATCH), /has ended/);
            self.control.fails = () => false;
            t.ok((await self.left()).waiting > WAITING / 2, 'most still wait');

            sent.push(...(await dispatchAll(self.start())));
            t.strictSame(sent.toSorted(), [...waiting, later].toSorted(), 'all others are sent, and each once');
            t.notOk(sent.includes(first ?? ''), 'but not what was in flight');
            t.strictSame(await self.left(), { waiting: 0, places: 0 });
            t.equal((await self.pool.query('select from scanwire.order_releases')).rows.length, 0, 'and nothing is left to do');
            const most = Math.max(...self.changed().flatMap((one) => [one.waiting, one.places]));
            t.ok(most <= LET_GO.step, `${most} with one statement`);
        },
    );

    t.test(`an exporter that holds nothing any more lets keys go in pieces, on ${database.name}`, async (t) => {
        const self = await deployment(t, database, { afterExhausted: 'hold' });
        const keys = Array.from({ length: WAITING }, (_, index) => `key ${index}`);
        const failed = await self.accept(keys);
        const waiting = await self.accept(keys);
        for (let next = 0; next < failed.length; next += BATCH) {
            await self.pool.query(FAIL, [failed.slice(next, next + BATCH)]);
        }
        const process = self.start();
        t.strictSame(await dispatchAll(process), [], 'all keys are held');
        self.forget();
        await process.exporters.update(self.id, { afterExhausted: 'skip' });
        const sent = await dispatchAll(process);
        t.strictSame(sent.toSorted(), waiting.toSorted());
        t.strictSame(await self.left(), { waiting: 0, places: WAITING }, 'they have their places themselves');
        const most = Math.max(...self.changed().map(({ places }) => places));
        t.ok(most <= LET_GO.step, `${most} with one statement`);
    });
}

t.test('what somebody else has locked is let go once it is free, and nobody waits for it', async (t) => {
    const [database] = databases;
    const self = await deployment(t, database as TestedDatabase, {});
    const [, ...waiting] = await self.accept(Array(3 * LET_GO.step).fill('one'));
    const [locked = ''] = waiting;
    const other = await self.pool.connect();
    await other.query('begin');
    await other.query('select from scanwire.deliveries where id = $1 for update', [locked]);
    const process = self.start();
    await process.exporters.update(self.id, { ordered: false });
    const sent = [...(await dispatchAll(process, 10))];
    t.strictSame(sent.toSorted(), waiting.slice(1).toSorted());
    await other.query('commit');
    other.release();
    t.strictSame(await dispatchAll(process), [locked]);
    t.equal((await self.pool.query('select from scanwire.order_releases')).rows.length, 0);
});
