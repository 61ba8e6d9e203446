import { randomUUID } from 'node:crypto';
import t from 'tap';
import { only } from '../../../adapters/contract/assertions.ts';
import {
    at,
    BEGIN_WITHIN,
    forAll,
    holderOf,
    RULES,
    sampleEvent,
    sampleExporter,
    success,
} from '../../../adapters/contract/webhooks/fixture.ts';
import { deliveries as deliveriesOf } from '../../../adapters/postgres/webhooks/deliveries.ts';
import type { DispatchOptions, DispatchResult, HandedOut } from '../../../lib/webhooks/deliveries/delivery-store.ts';
import { migratedPool } from '../../support/migrated-database.ts';
import { emptyWebhookStores } from './webhooks/empty-webhook-stores.ts';

/*
 * Looks begin at marks that rise while deliveries come and go. What is below them is not seen, so nothing may ever be there.
 */

const pool = await migratedPool(t, { max: 10 });
const stores = emptyWebhookStores(pool);
const { deliveries, exporters, setTime } = stores;

const handOut = { window: 300, breakerAfter: 9, beginWithin: BEGIN_WITHIN };
const dispatch: DispatchOptions = { ...handOut, limit: 500 };
const sweep = { requeueAfter: 600_000, limit: 500 };

/** Empty stores with an exporter, at a time from which on a second passes before all that waits is looked through. */
async function start(): Promise<string> {
    await stores.start();
    const { id } = sampleExporter();
    await exporters.insert(sampleExporter({ id }));
    await setTime(at(0));
    await deliveries.dispatch(dispatch);
    return id;
}

async function acceptOne(): Promise<HandedOut> {
    return only(only(await deliveries.accept([forAll(sampleEvent())], { handOut })).handedOut);
}

/** Sends so many that wait first or are handed out when they are accepted; the marks are beyond them at the end. */
async function pass(count: number, from: number): Promise<void> {
    for (let passed = 0; passed < count; passed += 50) {
        const events = Array.from({ length: 50 }, () => forAll(sampleEvent()));
        await deliveries.accept(events.slice(25));
        const accepted = await deliveries.accept(events.slice(0, 25), { handOut });
        const handedOut = [...accepted.flatMap((one) => one.handedOut), ...(await deliveries.dispatch(dispatch)).handedOut];
        await deliveries.recordOutcomes(
            handedOut.filter(({ reservation }) => reservation !== null).map((one) => success(holderOf(one), { begunAt: at(from) })),
            RULES,
        );
        await setTime(at(from + 1_000 + 20 * passed));
        await deliveries.dispatch(dispatch);
        await deliveries.sweep(sweep);
    }
}

async function landed(): Promise<number> {
    const { rows } = await pool.query<{ mark: string }>('select last_value as mark from scanwire.landed_flights');
    return Number(only(rows).mark);
}

async function flightOf(id: string): Promise<number> {
    const { rows } = await pool.query<{ flight: string }>('select flight from scanwire.deliveries where id = $1', [id]);
    return Number(only(rows).flight);
}

t.test('the mark of what is in flight rises, past what stays there', async (t) => {
    await start();
    await deliveries.keepAlive({ id: randomUUID(), process: 'a', slots: { default: 400 } }, 600_000);
    const slow = await acceptOne();
    const before = await flightOf(slow.deliveryId);
    await pass(400, 0);
    t.ok((await landed()) > before, `${await landed()}`);
    t.ok((await flightOf(slow.deliveryId)) >= (await landed()), 'it has got a new number');
    t.equal((await deliveries.dispatch({ ...dispatch, window: 1 })).handedOut.length, 0);
    const [second] = await deliveries.accept([forAll(sampleEvent())], { handOut: { ...handOut, window: 1 } });
    t.strictSame(second?.handedOut, [], 'it holds the only place');
});

t.test('what is queued and not committed stays beyond the mark', async (t) => {
    await start();
    const client = await pool.connect();
    await client.query('begin');
    const unseen = only(only(await deliveriesOf(client).accept([forAll(sampleEvent())], { handOut })).handedOut);
    await pass(300, 0);
    await client.query('commit');
    client.release();
    t.ok((await flightOf(unseen.deliveryId)) >= (await landed()));
    const { lost } = await deliveries.sweep({ ...sweep, requeueAfter: -1 });
    t.ok(lost.some(({ deliveryId }) => deliveryId === unseen.deliveryId) || (await state(unseen.deliveryId)) === 'pending');
});

t.test('what the version before queues is seen', async (t) => {
    await start();
    const [accepted] = await deliveries.accept([forAll(sampleEvent())]);
    const id = only(accepted?.deliveries ?? []);
    await pool.query("update scanwire.deliveries set due_at = due_at + interval '1 hour' where id = $1", [id]);
    await pass(200, 0);
    await setTime(at(3_700_000));
    const { rows } = await pool.query<{ id: string }>('select delivery_id as id from scanwire.dispatch_deliveries(300, 9, 500, 400, 1000)');
    t.equal(only(rows).id, id);
    t.ok((await flightOf(id)) >= (await landed()));
});

t.test('what a transaction of the application has accepted is handed out when it commits, however long it went on', async (t) => {
    await start();
    const { tx, commit } = await stores.begin();
    const [accepted] = await deliveries.accept([forAll(sampleEvent())], { tx });
    await pass(300, 0);
    await setTime(at(10_300));
    await deliveries.dispatch(dispatch);
    await commit();
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), accepted?.deliveries);
});

t.test('what is taken back is handed out at once, though it was due long ago', async (t) => {
    await start();
    const session = { id: randomUUID(), process: 'a', slots: { default: 400 } };
    await deliveries.keepAlive(session, 600_000);
    const unbegun = await acceptOne();
    await pass(300, 0);
    await setTime(at(10_300));
    await deliveries.dispatch(dispatch);
    await deliveries.keepAlive(session, 600_000);
    await deliveries.sweep(sweep);
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), [unbegun.deliveryId]);
});

t.test('what a worker is refused is handed out at once, though it was due long ago', async (t) => {
    const exporterId = await start();
    const { beginWithin: _, ...withoutClaims } = dispatch;
    await deliveries.accept([forAll(sampleEvent())]);
    const deliveryId = only(idsOf(await deliveries.dispatch(withoutClaims)));
    await pass(300, 0);
    await setTime(at(10_300));
    await deliveries.dispatch(dispatch);
    await exporters.update(exporterId, { pausedAt: at(10_300) });
    t.strictSame(await deliveries.claim([{ deliveryId, token: randomUUID(), duration: 60_000 }], null), [null]);
    await exporters.update(exporterId, { pausedAt: null });
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), [deliveryId]);
});

t.test('marks rise after January 2038', async (t) => {
    const noted = new Date('2038-01-20T00:00:00.000Z').getTime() - at(0).getTime();
    await start();
    await setTime(at(noted));
    await deliveries.dispatch(dispatch);
    const { tx, commit } = await stores.begin();
    const [accepted] = await deliveries.accept([forAll(sampleEvent())], { tx });
    await pass(100, noted);
    await setTime(at(noted + 4_000));
    await deliveries.dispatch(dispatch);
    await commit();
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), accepted?.deliveries);
});

t.test('what comes to wait with a time that is below the mark is found within five seconds', async (t) => {
    await start();
    const [accepted] = await deliveries.accept([forAll(sampleEvent())]);
    const id = only(accepted?.deliveries ?? []);
    await pool.query("update scanwire.deliveries set due_at = due_at + interval '1 hour' where id = $1", [id]);
    await pass(300, 0);
    await setTime(at(10_300));
    await deliveries.dispatch(dispatch);
    await pool.query('update scanwire.deliveries set due_at = $2 where id = $1', [id, at(0)]);
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), [], 'marks are of use');
    await setTime(at(15_300));
    t.strictSame(idsOf(await deliveries.dispatch(dispatch)), [id]);
});

t.test('what a dump has in flight below its marks, which it reads last, is found by who begins', async (t) => {
    const taken = async (): Promise<string> => {
        await start();
        await deliveries.keepAlive({ id: randomUUID(), process: 'a', slots: { default: 400 } }, 600);
        return (await acceptOne()).deliveryId;
    };
    const inFlight = async (session: string): Promise<boolean | undefined> => {
        let told: boolean | undefined;
        await deliveries.keepAlive({ id: session, process: 'b', slots: { default: 400 } }, 600_000, undefined, (outlook) => {
            told = outlook.inFlight;
        });
        return told;
    };

    for (const beyond of [0, 300]) {
        const id = await taken();
        await pool.query(`select setval('scanwire.landed_flights', ${beyond} + (select last_value from scanwire.flights) + 1)`);
        await setTime(at(60_000));
        t.equal(await inFlight(randomUUID()), true);
        await deliveries.sweep(sweep);
        t.equal(await state(id), 'pending', 'it is taken back');
        t.strictSame(idsOf(await deliveries.dispatch(dispatch)), [id]);
        t.ok((await flightOf(id)) >= (await landed()), 'and would be once more');
    }
});

t.test('a session that goes on leaves the mark where it is', async (t) => {
    await start();
    const session = { id: randomUUID(), process: 'a', slots: { default: 400 } };
    await deliveries.keepAlive(session, 600_000);
    await acceptOne();
    await pool.query(`select setval('scanwire.landed_flights', 1 + (select last_value from scanwire.flights))`);
    const before = await landed();
    await deliveries.keepAlive(session, 600_000);
    t.equal(await landed(), before, 'to look for the lowest is not cheap');
    await deliveries.keepAlive({ ...session, id: randomUUID() }, 600_000);
    t.ok((await landed()) < before);
});

function idsOf({ handedOut }: DispatchResult): readonly string[] {
    return handedOut.map(({ deliveryId }) => deliveryId);
}

async function state(id: string): Promise<string | undefined> {
    return (await deliveries.get(id))?.state;
}
