import t from 'tap';
import { at, BEGIN_WITHIN, sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import type { DispatchOptions } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { emptyWebhookStores } from '../adapters/postgres/webhooks/empty-webhook-stores.ts';
import { migratedPool } from '../support/migrated-database.ts';

/*
 * Beside an old snapshot nothing of what has waited goes from its index, and a hand-out that looks through it all takes as long as there is of it.
 */

const DISPATCH: DispatchOptions = { window: 300, breakerAfter: 9, beginWithin: BEGIN_WITHIN, limit: 500 };

/** Takes a second of the store's time, or more than a statement may. */
const SLOW_LOOK = `
create table public.looks (number serial, is_cut_off boolean);
create or replace function scanwire.raise_waiting_marks(at timestamptz, through boolean) returns void language plpgsql as $$
begin
    if through and (select bool_or(l.is_cut_off) from public.looks l) then
        perform pg_sleep(60);
    elsif through then
        insert into public.looks (is_cut_off) values (false);
        update public.test_clock c set at = c.at + interval '1 second';
    end if;
end
$$`;

t.test(
    'a hand-out that has to pass by much looks through it the less often, and one that was cut off is not begun again by the next',
    async (t) => {
        const pool = await migratedPool(t, { max: 2 });
        const { deliveries, exporters, setTime, start } = emptyWebhookStores(pool);
        await start();
        await exporters.insert(sampleExporter());
        await setTime(at(0));
        await deliveries.dispatch(DISPATCH);
        await pool.query(SLOW_LOOK);
        const looks = async (): Promise<number> => (await pool.query('select from public.looks')).rowCount ?? 0;
        /** How many looks there are once it is so many milliseconds later, with a hand-out in every second. */
        const lookedBy = async (from: number, to: number): Promise<number> => {
            for (let now = from; now <= to; now += 1_000) {
                await setTime(at(now));
                await deliveries.dispatch(DISPATCH);
            }
            return await looks();
        };
        t.equal(await lookedBy(1_000, 9_000), 1);
        t.equal(await lookedBy(10_000, 44_000), 1, 'a look of a second rests for 40');
        t.equal(await lookedBy(45_000, 50_000), 2);

        await pool.query('insert into public.looks (is_cut_off) values (true)');
        const client = await pool.connect();
        await client.query("set statement_timeout = '200ms'");
        client.release();
        await setTime(at(100_000));
        await t.rejects(deliveries.dispatch(DISPATCH));
        await setTime(at(101_000));
        await t.resolves(deliveries.dispatch(DISPATCH));
        await setTime(at(159_000));
        await t.resolves(deliveries.dispatch(DISPATCH));
        await setTime(at(165_000));
        await t.rejects(deliveries.dispatch(DISPATCH), 'it is tried again');
    },
);
