import type pg from 'pg';
import t from 'tap';
import { examination, type Finding } from './examination.ts';
import { LOOK_THROUGH } from './way.ts';

/* That what `every-state.ts` looks for is seen where it is. */

const RAISE_WAITING_MARKS = 'raise_waiting_marks(at timestamptz, through boolean)';

/** Functions that have lost what keeps their plans, whatever these are made for, and the statements that must be seen to cost more. */
const UNKEPT: Readonly<Record<string, string>> = {
    claimed_messages: 'claim one',
    claim_attempts: 'claim one',
    finish_delivered: 'finish two',
};

t.test('sees functions whose plans nothing keeps', async (t) => {
    const tables = await examination('never');
    t.teardown(() => tables.end());
    for (const name of Object.keys(UNKEPT)) {
        await tables.pool.query(`alter function scanwire.${name} reset all`);
    }
    const costly = costlyOf(await tables.findings({ name: '500 kept', rows: 500 }));
    for (const statement of Object.values(UNKEPT)) {
        t.ok(costly.has(statement), statement);
    }
});

t.test('sees marks that nothing raises, beside an old snapshot', async (t) => {
    const tables = await examination('freshly');
    t.teardown(() => tables.end());
    await replace(tables.pool, 'raise_mark_of_flights()', '');
    await replace(tables.pool, RAISE_WAITING_MARKS, '');
    const sent = { count: 2_000 };
    const costly = costlyOf(await tables.findings({ name: '2,000 just sent', sent, reader: 'old snapshot' }));
    for (const statement of ['accept and hand out', 'accept with a key', 'hand out one', 'sweep nothing']) {
        t.ok(costly.has(statement), statement);
    }
});

t.test('sees statements that look for rates though no exporter has one', async (t) => {
    const tables = await examination('freshly');
    t.teardown(() => tables.end());
    await replace(tables.pool, RAISE_WAITING_MARKS, 'perform from scanwire.exporter_rates;');
    t.ok(costlyOf(await tables.findings({ name: 'nothing kept' })).has(LOOK_THROUGH));
});

function costlyOf(findings: readonly Finding[]): ReadonlySet<string> {
    return new Set(findings.filter(({ problems }) => problems.length > 0).map(({ statement }) => statement));
}

async function replace(pool: pg.Pool, declaration: string, body: string): Promise<void> {
    await pool.query(`create or replace function scanwire.${declaration} returns void language plpgsql as 'begin ${body} end'`);
}
