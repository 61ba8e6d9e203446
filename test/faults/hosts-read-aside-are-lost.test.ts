import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { databases, startAfresh } from '../adapters/postgres/databases.ts';
import { all, each, manyHosts } from '../adapters/postgres/imports/imported.ts';

const HOUR = 3_600_000;
const BATCH = 150;

const asideIn = async (pool: PoolLike, where = 'true'): Promise<number> => {
    const { rows } = await pool.query<{ count: number }>(`select count(*)::integer as count from scanwire.import_batches where ${where}`);
    return rows[0]?.count ?? 0;
};

/** Hosts of which some are said between `first` and `last` once those before are aside. */
async function* withPause(
    first: readonly HostInput[],
    batches: number,
    pool: PoolLike,
    pause: () => Promise<unknown>,
    last: readonly HostInput[],
) {
    yield* first;
    await until(async () => (await asideIn(pool)) === batches, 20_000);
    await pause();
    yield* last;
}

/** A host that alone has several batches. */
const crowd = (address: string): HostInput => ({
    address,
    services: Array.from({ length: 1_200 }, (_, index) => ({ port: index + 1, proto: 'tcp', state: 'open' })),
});

const LOST: Readonly<Record<string, { first: readonly HostInput[]; batches: number; lost: string; last: readonly HostInput[] }>> = {
    'all of them, as after a crash': {
        first: manyHosts(2 * BATCH + 1),
        batches: 2,
        lost: 'true',
        last: manyHosts(400).slice(2 * BATCH + 1),
    },
    'those of one batch': { first: manyHosts(2 * BATCH + 1), batches: 2, lost: 'seq = 1', last: manyHosts(400).slice(2 * BATCH + 1) },
    'a part of one host': { first: [crowd('10.0.0.0'), ...manyHosts(2).slice(1)], batches: 3, lost: 'seq = 1', last: [] },
    'those of a batch of which more is said': { first: manyHosts(BATCH + 1), batches: 1, lost: 'seq = 0', last: manyHosts(1) },
};

/** What an import leaves takes its time to be removed. */
const SLOWLY = `
    create or replace function scanwire.slowly() returns trigger language plpgsql as 'begin perform pg_sleep(0.2); return null; end';
    create trigger slowly before delete on scanwire.import_batches execute function scanwire.slowly()`;

function refuses(t: Test, pool: PoolLike): void {
    for (const [what, { first, batches, lost, last }] of Object.entries(LOST)) {
        t.test(`is refused where the database has lost ${what}`, async (t) => {
            await startAfresh(pool);
            const store = postgresInventory({ pool });
            const { workspace } = await store.importHosts('office', each(manyHosts(400)));
            const before = await all(store.hosts, [workspace.id]);
            t.teardown(() => pool.query('drop trigger slowly on scanwire.import_batches'));
            const lose = async (): Promise<void> => {
                await pool.query(`delete from scanwire.import_batches where ${lost}`);
                await pool.query(SLOWLY);
            };
            const source = withPause(first, batches, pool, lose, last);
            await t.rejects(store.importHosts('office', source, { replace: true }), {
                code: 'UNAVAILABLE',
                message: 'The database has lost hosts that were read, and none is stored: import them again',
            });
            t.same(await all(store.hosts, [workspace.id]), before);
            t.equal(await asideIn(pool), 0);
        });
    }
}

function keeps(t: Test, pool: PoolLike): void {
    t.test('keeps what it has read, however long it reads', async (t) => {
        await startAfresh(pool);
        mock.timers.enable({ apis: ['setInterval'] });
        t.teardown(() => mock.timers.reset());
        const store = postgresInventory({ pool });
        const days = async (): Promise<void> => {
            for (let round = 0; round < 2; round += 1) {
                await pool.query(`update scanwire.import_batches set created_at = created_at - interval '23 hours'`);
                mock.timers.tick(HOUR);
                await until(async () => (await asideIn(pool, `created_at < scanwire.now() - interval '20 hours'`)) === 0, 5_000);
            }
            await store.importHosts('other', each([{ address: '192.0.2.7' }]));
        };
        const source = withPause(manyHosts(2 * BATCH + 1), 2, pool, days, manyHosts(400).slice(2 * BATCH + 1));
        t.match(await store.importHosts('office', source), { hosts: { new: 400 } });
        t.equal(await asideIn(pool), 0);
    });

    t.test('leaves nothing of one that was cut off a day ago', async (t) => {
        await startAfresh(pool);
        await pool.query(`insert into scanwire.import_batches (import_id, seq, created_at, hosts)
            values (gen_random_uuid(), 0, scanwire.now() - interval '25 hours', '[]')`);
        await postgresInventory({ pool }).importHosts('other', each([{ address: '192.0.2.7' }]));
        t.equal(await asideIn(pool), 0);
    });
}

for (const { name, openMigrated } of databases) {
    t.test(`an import into ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        refuses(t, pool);
        keeps(t, pool);
    });
}
