import { randomUUID } from 'node:crypto';
import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../../../adapters/postgres/index.ts';
import { databases, startAfresh } from '../databases.ts';
import { all, each, manyHosts } from '../imports/imported.ts';

/** Lets the workspace be one into which an import is at work, or was until it died. */
async function takeTurn(pool: PoolLike, name: string, lease: string): Promise<void> {
    await pool.query(`update scanwire.workspaces set import_id = $2, import_until = ${lease}, hosts_until = 1000 where name = $1`, [
        name,
        randomUUID(),
    ]);
}

for (const { name, openMigrated } of databases) {
    t.test(`moving hosts on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(() => startAfresh(pool));
        const store = postgresInventory({ pool });

        t.test('writes the text of a moved host again', async (t) => {
            await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            const to = await store.ensureWorkspace('lab');
            await store.moveHosts([1], 'lab');
            let text = '';
            for await (const batch of store.hosts.listText?.([to.id]) ?? []) {
                text += batch;
            }
            t.match(JSON.parse(text), { id: 1, workspace_id: to.id, address: '192.0.2.1' });
        });

        for (const workspace of ['default', 'lab']) {
            t.test(`waits for an import that is at work in ${workspace}`, async (t) => {
                await store.importHosts('default', each([{ address: '192.0.2.1' }]));
                const to = await store.ensureWorkspace('lab');
                await takeTurn(pool, workspace, `scanwire.now() + interval '1 hour'`);
                let isMoved = false;
                const moving = store.moveHosts([1], 'lab').then(() => {
                    isMoved = true;
                });
                await store.importHosts('elsewhere', each(manyHosts(300)));
                t.equal(isMoved, false);
                t.same(await all(store.hosts, [to.id]), []);
                // One row a statement: those who move hosts may hold rows in another order.
                for (const { id } of (await pool.query<{ id: number }>('select id from scanwire.workspaces')).rows) {
                    await pool.query(
                        'update scanwire.workspaces set import_id = null, import_until = null, hosts_until = null where id = $1',
                        [id],
                    );
                }
                await moving;
                t.match(await all(store.hosts, [to.id]), [{ address: '192.0.2.1' }]);
            });
        }

        t.test('ends an import that died where the hosts go, and takes what it had not shown for not there', async (t) => {
            await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            const to = await store.ensureWorkspace('lab');
            await pool.query(`insert into scanwire.hosts (workspace_id, address, generation) values ($1, '192.0.2.1', 7)`, [to.id]);
            await pool.query('update scanwire.workspaces set hosts_until = 0, import_id = $2, import_until = $3 where id = $1', [
                to.id,
                randomUUID(),
                '-infinity',
            ]);
            t.same(await store.moveHosts([1], 'lab'), { hosts: 1 });
            t.match(await all(store.hosts, [to.id]), [{ id: 1, address: '192.0.2.1' }]);
        });

        t.test('makes no workspace, and moves nothing into or out of one that is only being made', async (t) => {
            await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            await pool.query(`insert into scanwire.workspaces (name, generation) values ('hidden', -1)`);
            await pool.query(
                `insert into scanwire.hosts (workspace_id, address, generation) select id, '192.0.2.2', 0 from scanwire.workspaces where name = 'hidden'`,
            );
            for (const name of ['hidden', 'neither']) {
                await t.rejects(store.moveHosts([1], name), { code: 'NOT_FOUND', message: `Unknown workspace "${name}"` });
            }
            await t.rejects(store.moveHosts([2], 'default'), { code: 'NOT_FOUND', message: 'There is no host with the id 2' });
            await t.rejects(store.updateWorkspace('hidden', { boundary: null }), { code: 'NOT_FOUND' });
            t.same(
                (await all(store.workspaces, [])).map(({ name }) => name),
                ['default'],
            );
        });

        t.test('gives a workspace a name that an import has left behind, and waits for one that is at work in it', async (t) => {
            await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            const lab = await store.ensureWorkspace('lab');
            await pool.query(`insert into scanwire.workspaces (name, generation, import_id, import_until) values
                ('left', -1, gen_random_uuid(), '-infinity'), ('hidden', -1, null, null)`);
            for (const [name, to] of [
                ['lab', 'left'],
                ['left', 'hidden'],
            ] as const) {
                t.match(await store.renameWorkspace(name, to), { id: lab.id, name: to });
            }
            await t.rejects(store.renameWorkspace('left', 'lab'), { code: 'NOT_FOUND' });

            const at = new Date(Date.now() + 60_000);
            await pool.query('update scanwire.workspaces set import_id = $2, import_until = $3 where id = $1', [lab.id, randomUUID(), at]);
            let renamed = false;
            const waiting = store.renameWorkspace('hidden', 'lab').then(() => {
                renamed = true;
            });
            for (let more = 0; more < 30; more += 1) {
                // Each takes as long as one of the few statements of a name that is given.
                await all(store.hosts, [1]);
            }
            t.equal(renamed, false);
            await pool.query('update scanwire.workspaces set import_id = null, import_until = null where id = $1', [lab.id]);
            await waiting;
            t.same(
                (await all(store.workspaces, [])).map(({ name }) => name),
                ['default', 'lab'],
            );
        });

        t.test('lets movers in both directions not lock each other out', async (t) => {
            await store.importHosts('default', each(manyHosts(20)));
            const to = await store.ensureWorkspace('lab');
            await store.moveHosts([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], 'lab');
            const ids = (await all(store.hosts, [1])).map(({ id }) => id);
            const moves = ids.flatMap((id, index) => [store.moveHosts([id], 'lab'), store.moveHosts([index + 1], 'default')]);
            t.same(
                await Promise.all(moves),
                Array.from({ length: 20 }, () => ({ hosts: 1 })),
            );
            t.equal((await all(store.hosts, [to.id])).length, 10);
        });

        t.test('takes who was moved away while it waited for not there', async (t) => {
            await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            for (const name of ['lab', 'attic', 'cellar']) {
                await store.ensureWorkspace(name);
            }
            await takeTurn(pool, 'lab', `scanwire.now() + interval '1 hour'`);
            let look = (): void => {};
            const looked = new Promise<void>((resolve) => {
                look = resolve;
            });
            // It is asked for the time once it knows where the hosts are.
            const clock = (): Date => {
                look();
                return new Date();
            };
            const moving = postgresInventory({ pool, clock }).moveHosts([1], 'lab');
            await looked;
            const refused = t.rejects(moving, { code: 'NOT_FOUND', field: 'ids', message: 'There is no host with the id 1' });
            await store.moveHosts([1], 'attic');
            await pool.query('update scanwire.workspaces set import_id = null, import_until = null, hosts_until = null');
            await refused;
        });

        t.test('shows nobody a part of a move', async (t) => {
            await store.importHosts('default', each(manyHosts(200)));
            const to = await store.ensureWorkspace('lab');
            let done = false;
            const moving = store
                .moveHosts(
                    Array.from({ length: 200 }, (_, index) => index + 1),
                    'lab',
                )
                .then(() => {
                    done = true;
                });
            const seen = new Set<number>();
            await until(async () => {
                seen.add((await store.hosts.count?.([to.id], {})) ?? -1);
                return done;
            });
            await moving;
            seen.add((await store.hosts.count?.([to.id], {})) ?? -1);
            t.same(
                [...seen].filter((count) => count !== 0 && count !== 200),
                [],
            );
            t.ok(seen.has(200));
        });
    });
}
