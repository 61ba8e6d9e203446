import t from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { databases } from '../adapters/postgres/databases.ts';
import { failingOnceAt } from '../adapters/postgres/failing-pools.ts';
import { all, each, manyHosts } from '../adapters/postgres/imports/imported.ts';

const DELETION = /^with looked as materialized \(\s+select ctid/;
const EVERYTHING = { notSeenSince: new Date('2999-01-01T00:00:00Z') };

const warned: unknown[] = [];
const { emitWarning } = process;
process.emitWarning = ((message: unknown) => warned.push(message)) as never;
t.teardown(() => {
    process.emitWarning = emitWarning;
});

for (const { name, openMigrated } of databases) {
    t.test(`on ${name}, behind the moment in which they are gone`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        const store = postgresInventory({ pool });
        const failing = () => postgresInventory({ pool: failingOnceAt(pool, DELETION) });
        const left = async (): Promise<unknown> =>
            (
                await pool.query(`select (select count(*)::integer from scanwire.hosts) as hosts,
                    (select count(*)::integer from scanwire.workspaces where import_id is not null) as leases`)
            ).rows[0];

        for (const [what, remove] of [
            ['a removal', () => failing().removeHosts('default', {})],
            ['an expiry', () => failing().expireHosts('default', EVERYTHING)],
        ] as const) {
            t.test(`${what} has succeeded, warns, and leaves the rest to the next writer at once`, async (t) => {
                const { workspace } = await store.importHosts('default', each(manyHosts(3)));
                warned.splice(0);
                t.same(await remove(), { hosts: 3 });
                t.same(warned, ['The hosts are removed, and the next writer of their workspace deletes them: failed']);
                t.same(await all(store.hosts, [workspace.id]), []);
                t.same(await left(), { hosts: 3, leases: 1 });
                await store.importHosts('default', each([]));
                t.same(await left(), { hosts: 0, leases: 0 });
            });
        }

        t.test('the removal of a workspace fails, for there it is, and removes it when it is asked for again', async (t) => {
            const { workspace } = await store.importHosts('lab', each(manyHosts(3)));
            await t.rejects(failing().removeWorkspace('lab'), { message: 'failed' });
            t.match(await store.workspaces.get([], workspace.id), { name: 'lab' });
            t.same(await all(store.hosts, [workspace.id]), []);
            await store.removeWorkspace('lab');
            t.equal(await store.workspaces.get([], workspace.id), null);
            t.same(await left(), { hosts: 0, leases: 0 });
        });
    });
}
