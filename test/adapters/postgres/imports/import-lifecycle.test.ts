import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { record } from '../../../../adapters/contract/records/fixture.ts';
import { type PoolLike, postgresInventory, postgresRecords } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import type { ImportOptions, ImportProgress } from '../../../../lib/inventory/store.ts';
import { databases, startAfresh } from '../databases.ts';
import { dyingAt, failingOnceAt, leasesEnd, losingTheAnswerTo, setAhead } from '../failing-pools.ts';
import { all, each, manyHosts } from './imported.ts';

const ssh: ServiceInput = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null };
const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' };
const known: HostInput = { address: '192.0.2.7', name: 'before', services: [ssh] };
const changed: HostInput = { address: '192.0.2.7', name: 'after', services: [{ ...ssh, state: 'closed' }, https] };

/** A pool of a process that sleeps so long that another takes the lease of its import. */
function losingItsLease(pool: PoolLike): PoolLike {
    let connections = 0;
    return {
        query: pool.query.bind(pool),
        async connect() {
            connections += 1;
            if (connections === 9) {
                await pool.query('update scanwire.workspaces set import_id = gen_random_uuid(), import_until = now()');
            }

            return await pool.connect();
        },
    };
}

/** An import of hosts that the workspace has and of new ones, in several slices, whose process dies on the way. */
async function dies(t: Test, pool: PoolLike, workspace: string, statement: RegExp, times: number): Promise<void> {
    const store = postgresInventory({ pool: dyingAt(pool, statement, times) });
    await t.rejects(store.importHosts(workspace, each([changed, ...manyHosts(700)])), { message: 'killed' });
}

async function leftovers(pool: PoolLike): Promise<unknown> {
    const { rows } = await pool.query(`select (select count(*)::integer from scanwire.hosts) as hosts,
        (select count(*)::integer from scanwire.services) as services,
        (select count(*)::integer from scanwire.staged_hosts) as staged_hosts,
        (select count(*)::integer from scanwire.staged_services) as staged_services,
        (select count(*)::integer from scanwire.workspaces where import_id is not null or generation < 0 or staged_shown) as workspaces`);
    return rows[0];
}

const NONE = { staged_hosts: 0, staged_services: 0, workspaces: 0 };

for (const { name, open } of databases) {
    t.test(`staged imports on ${name}`, async (t) => {
        const { pool, stop } = await open();
        t.after(stop);
        t.beforeEach(async () => {
            await startAfresh(pool);
            await setAhead(pool, 0);
        });
        const store = postgresInventory({ pool });

        t.test('tell how far they are of all that they do', async (t) => {
            await store.importHosts('default', each([known, ...manyHosts(299)]));
            const phasesOf = async (hosts: readonly HostInput[], options: ImportOptions): Promise<unknown> => {
                const told = new Map<string, ImportProgress[]>();
                const onProgress = (progress: ImportProgress): void => {
                    told.set(progress.phase, [...(told.get(progress.phase) ?? []), progress]);
                };
                await store.importHosts('default', each(hosts), { ...options, onProgress });
                for (const [phase, progress] of told) {
                    const done = progress.map((one) => one.done);
                    t.strictSame(
                        done,
                        done.toSorted((one, other) => one - other),
                        phase,
                    );
                    t.ok(progress.filter((one) => one.done === one.total).length >= 1, phase);
                    t.equal(new Set(progress.map(({ total }) => total)).size, 1, phase);
                }
                return [...told].map(([phase, progress]) => [
                    phase,
                    progress[0]?.total,
                    ...progress.slice(-1).flatMap(({ ahead = [] }) => ahead),
                ]);
            };
            const hosts = [changed, ...manyHosts(100), { address: '198.51.100.1' }];

            // What is said of the phases ahead is what they are, once all is done that they depend on.
            t.strictSame(await phasesOf(hosts, { dryRun: true }), [
                ['storing', 102, { undoing: 302 }],
                // The host that differs, the new one, and when each of the others was seen.
                ['undoing', 302],
            ]);
            t.strictSame(await phasesOf(hosts, { dryRun: true, replace: true }), [
                ['storing', 102, { comparing: 300, undoing: 302 }],
                ['comparing', 300, { undoing: 502 - 1 }],
                ['undoing', 502 - 1],
            ]);
            t.strictSame(await phasesOf(hosts, { replace: true }), [
                ['storing', 102, { comparing: 300, showing: 1 }],
                ['comparing', 300, { showing: 200 }],
                ['showing', 200],
            ]);
        });

        t.test('show nothing when their process dies before the end, and the next writer removes the rest', async (t) => {
            const { workspace } = await store.importHosts('default', each([known]));
            const before = await seen(workspace.id);
            await dies(t, pool, 'default', /json_to_recordset\(hosts\)/, 4);
            t.same(await seen(workspace.id), before);
            t.ok(((await leftovers(pool)) as { hosts: number }).hosts > 1, 'some was stored');

            await leasesEnd(pool);
            await store.importHosts('default', each([{ address: '192.0.2.8' }]));
            t.same(await leftovers(pool), { hosts: 2, services: 1, ...NONE });
            t.same((await seen(workspace.id))[0], before[0]);
        });

        t.test('take nobody for seen when they are not shown', async (t) => {
            let now = new Date('2026-11-21T09:00:00Z');
            const timed = postgresInventory({ pool, clock: () => now });
            const { workspace } = await timed.importHosts('default', each([known, { address: '192.0.2.8' }]));
            await pool.query(`delete from scanwire.sightings where host_id = (select max(id) from scanwire.hosts)`);
            const seen = async (): Promise<(Date | null | undefined)[]> => {
                const found: object[] = [];
                for await (const hosts of timed.hosts.select?.([workspace.id], { extras: ['last_seen'] }) ?? []) {
                    found.push(...hosts);
                }
                return found.map((host) => (host as { last_seen?: Date | null }).last_seen);
            };
            const first = [now, now];
            t.same(await seen(), first);

            now = new Date('2026-11-22T09:00:00Z');
            const dying = postgresInventory({ pool: dyingAt(pool, /json_to_recordset\(hosts\)/, 4), clock: () => now });
            const input = [changed, { address: '192.0.2.8' }, ...manyHosts(700)];
            await t.rejects(dying.importHosts('default', each(input)), { message: 'killed' });
            t.same(await seen(), first);
            await leasesEnd(pool);
            await timed.importHosts('default', each([]));
            t.same(await seen(), first);
            await timed.importHosts('default', each([{ address: '192.0.2.8', state: 'down' }, known]));
            t.same(await seen(), [now, first[1]]);
        });

        t.test('and the removal of hosts take turns, also where it fails', async (t) => {
            const { workspace } = await store.importHosts('default', each([known, ...manyHosts(700)]));
            const everything = { notSeenSince: new Date('2999-01-01T00:00:00Z') };
            const failing = postgresInventory({ pool: failingOnceAt(pool, /select \$1, id, scanwire.now/) });
            await t.rejects(failing.expireHosts('default', everything), { message: 'failed' });
            t.equal((await all(store.hosts, [workspace.id])).length, 701);
            t.match(await leftovers(pool), { hosts: 701, ...NONE });
            const [expired, { hosts }] = await Promise.all([
                store.expireHosts('default', everything),
                store.importHosts('default', each([{ address: '192.0.2.8' }])),
            ]);
            t.equal(expired.hosts + (await seen(workspace.id)).length, 702);
            t.same(hosts, importCounts({ new: 1 }));
            t.match(await leftovers(pool), NONE);
        });

        for (const [stage, statement, times, left] of [
            ['they are marked', /select \$1, id, scanwire.now/, 2, 701],
            ['they are to be gone', /set generation = \$2, staged_shown/, 1, 701],
            ['they are deleted', /delete from scanwire.hosts/, 2, 0],
        ] as const) {
            t.test(`and hosts are removed all or not when the process dies while ${stage}`, async (t) => {
                const { workspace } = await store.importHosts('default', each([known, ...manyHosts(700)]));
                const dying = postgresInventory({ pool: dyingAt(pool, statement, times) });
                const removed = dying.removeHosts('default', {});
                await (left === 0 ? t.resolves(removed) : t.rejects(removed, { message: 'killed' }));
                t.equal((await all(store.hosts, [workspace.id])).length, left);
                await leasesEnd(pool);
                await store.importHosts('default', each([]));
                t.equal((await all(store.hosts, [workspace.id])).length, left);
                t.match(await leftovers(pool), { hosts: left, ...NONE });
            });
        }

        t.test('say so when their workspace is removed at once', async (t) => {
            await pool.query(`create function vanish() returns trigger language plpgsql as 'begin return null; end'`);
            await pool.query(
                `create trigger vanish before insert on scanwire.workspaces for each row when (new.name = 'gone') execute function vanish()`,
            );
            t.teardown(() => pool.query('drop function vanish cascade'));
            const refusal = { code: 'CONFLICT', message: 'The workspace was removed while it was looked for' };
            await t.rejects(store.importHosts('gone', each([known])), refusal);
            await t.rejects(store.ensureWorkspace('gone'), refusal);
            t.same(await leftovers(pool), { hosts: 0, services: 0, ...NONE });
        });

        t.test('show no workspace that they made either', async (t) => {
            await dies(t, pool, 'new', /json_to_recordset\(hosts\)/, 4);
            t.same(
                (await all(store.workspaces, [])).map(({ name }) => name),
                ['default'],
            );
            await leasesEnd(pool);
            t.equal((await store.importHosts('new', each([]))).hosts.new, 0);
            t.same(await leftovers(pool), { hosts: 0, services: 0, ...NONE });
        });

        t.test('leave what others stored in the workspace that they made', async (t) => {
            await dies(t, pool, 'new', /json_to_recordset\(hosts\)/, 4);
            // As processes of the version before write, which know nothing of imports that are not shown.
            await pool.query(
                `with host as (
                    insert into scanwire.hosts (workspace_id, address, created_at, updated_at)
                    select id, '192.0.2.99', now(), now() from scanwire.workspaces where name = 'new' returning id
                )
                insert into scanwire.services (host_id, port, proto, state, created_at, updated_at)
                select id, 22, 'tcp', 'open', now(), now() from host`,
            );
            await leasesEnd(pool);
            const { workspace } = await store.importHosts('new', each([{ address: '192.0.2.8' }]));
            t.match(await seen(workspace.id), [
                { address: '192.0.2.99', service_count: 1, services: [{ port: 22 }] },
                { address: '192.0.2.8' },
            ]);
            t.same(await leftovers(pool), { hosts: 2, services: 1, ...NONE });
        });

        t.test('are whole when their process dies after they were shown', async (t) => {
            const { workspace } = await store.importHosts('default', each([known, ...manyHosts(700)]));
            // It is shown, so it has succeeded.
            const dying = postgresInventory({ pool: dyingAt(pool, /delete from scanwire.staged_hosts/, 3) });
            const late = await dying.importHosts('default', each([changed, ...manyHosts(700, 'other')]));
            const none = { notes: importCounts(), vulns: importCounts() };
            t.same(late, { workspace, hosts: importCounts({ changed: 701 }), services: importCounts({ new: 1, gone: 1 }), ...none });
            const shown = await seen(workspace.id);
            t.match(shown[0], { name: 'after', service_count: 2, services: [{ state: 'closed' }, { port: 443 }] });
            t.ok(((await leftovers(pool)) as { staged_hosts: number }).staged_hosts > 0, 'some was not moved into place');
            t.same(await store.hosts.get([workspace.id], shown[0]?.id ?? 0), (await all(store.hosts, [workspace.id]))[0]);

            await leasesEnd(pool);
            await store.importHosts('default', each([]));
            t.same(await seen(workspace.id), shown);
            t.same(await leftovers(pool), { hosts: 701, services: 2, ...NONE });
        });

        t.test('find what is laid over services of hosts that are as they were', async (t) => {
            const { workspace } = await store.importHosts('default', each([known, { ...known, address: '192.0.2.8' }]));
            const before = await seen(workspace.id);
            const closed = { ...known, services: [{ ...ssh, state: 'closed' } as const] };
            const failing = postgresInventory({ pool: failingOnceAt(pool, /delete from scanwire.staged_hosts/) });
            const { hosts } = await failing.importHosts('default', each([closed, { ...known, address: '192.0.2.8', services: [https] }]));
            t.same(hosts, importCounts({ changed: 1, unchanged: 1 }));
            const shown = await seen(workspace.id);
            t.match(shown, [{ updated_at: before[0]?.updated_at, services: [{ state: 'closed' }] }, { service_count: 2 }]);

            const { rows } = await pool.query('select xmin::text from scanwire.hosts order by id limit 1');
            await store.importHosts('default', each([]));
            t.same(await seen(workspace.id), shown);
            t.same(await leftovers(pool), { hosts: 2, services: 3, ...NONE });
            t.same((await pool.query('select xmin::text from scanwire.hosts order by id limit 1')).rows, rows);
        });

        t.test('write no row of what is so already', async (t) => {
            const input = [changed, ...manyHosts(300)];
            await store.importHosts('default', each(input));
            const written = async (): Promise<unknown> =>
                (await pool.query('select xmin::text from scanwire.hosts union all select xmin::text from scanwire.services')).rows;
            const before = await written();
            const { hosts, services } = await store.importHosts('default', each([...input, changed]));
            t.same([hosts, services], [importCounts({ unchanged: 301 }), importCounts({ unchanged: 2 })]);
            t.same(await written(), before);
        });

        t.test('that fail after they were shown leave their workspace to the next writer at once', async (t) => {
            await store.importHosts('default', each([known]));
            const { hosts } = await postgresInventory({ pool: failingOnceAt(pool, /delete from scanwire.staged_hosts/) }).importHosts(
                'default',
                each([changed]),
            );
            t.same(hosts, importCounts({ changed: 1 }));
            await store.importHosts('default', each([]));
            t.same(await leftovers(pool), { hosts: 1, services: 2, ...NONE });
        });

        t.test('have succeeded where only the answer to showing them was lost', async (t) => {
            const { workspace } = await store.importHosts('default', each([known]));
            const { hosts } = await postgresInventory({ pool: losingTheAnswerTo(pool, /staged_shown = true/) }).importHosts(
                'default',
                each([changed]),
            );
            t.same(hosts, importCounts({ changed: 1 }));
            t.match(await seen(workspace.id), [{ name: 'after' }]);
            t.same(await leftovers(pool), { hosts: 1, services: 2, ...NONE });
        });

        t.test('are removed where showing them fails', async (t) => {
            const { workspace } = await store.importHosts('default', each([known]));
            const importing = postgresInventory({ pool: failingOnceAt(pool, /staged_shown = true/) });
            await t.rejects(importing.importHosts('default', each([changed])), { message: 'failed' });
            t.match(await seen(workspace.id), [{ name: 'before' }]);
            t.same(await leftovers(pool), { hosts: 1, services: 1, ...NONE });
        });

        t.test('remove what they had stored when a value is refused late', async (t) => {
            const { workspace } = await store.importHosts('default', each([known]));
            const before = await seen(workspace.id);
            for (const bad of [
                { nexpose_data_asset_id: 2 ** 40 },
                { state: 'burning' as 'alive' },
                { services: [{ ...ssh, state: 'odd' as 'open' }] },
            ]) {
                const input = [changed, ...manyHosts(700), { address: '192.0.2.7', ...bad }];
                await t.rejects(store.importHosts('default', each(input)), { code: 'INVALID_INPUT' });
                await t.rejects(store.importHosts('other', each(input)), { code: 'INVALID_INPUT' });
            }

            t.same(await seen(workspace.id), before);
            t.same(await leftovers(pool), { hosts: 1, services: 1, ...NONE });
        });

        t.test('teach the planner what the database would teach it', async (t) => {
            await store.importHosts('default', each(manyHosts(700)));
            const bounds = async (): Promise<unknown> => {
                const { rows } = await pool.query(
                    `select cardinality(histogram_bounds::text::text[]) as count from pg_stats
                     where schemaname = 'scanwire' and tablename = 'hosts' and attname = 'address'`,
                );
                return rows;
            };
            const learnt = await bounds();
            await pool.query('analyze scanwire.hosts');
            t.same(learnt, await bounds());
            t.same(learnt, [{ count: name === 'PGlite' ? 11 : 101 }]);
        });

        t.test('stop when another writer has taken them for dead', async (t) => {
            const late = postgresInventory({ pool: losingItsLease(pool) });
            await t.rejects(late.importHosts('default', each(manyHosts(700))), { code: 'CONFLICT' });
        });

        t.test('and records that enrich wait for an import in the same workspace, and hold up nobody meanwhile', async (t) => {
            await pool.query(`update scanwire.workspaces set import_id = gen_random_uuid(), import_until = now() + interval '1 hour'`);
            const records = postgresRecords({ pool });
            let ended = 0;
            const waiting = [
                store.importHosts('default', each([known])),
                records.add([record()], { enrich: { workspace: 'default' } }),
            ].map((work) =>
                work.finally(() => {
                    ended += 1;
                }),
            );
            await records.add([record({ path: '/other' })]);
            await store.importHosts('elsewhere', each(manyHosts(300)));
            t.equal(ended, 0);

            await pool.query('update scanwire.workspaces set import_id = null, import_until = null');
            await Promise.all(waiting);
            t.same(await leftovers(pool), { hosts: 301, services: 2, ...NONE });
        });

        t.test('and records that enrich wait so long and no longer for an import that does not get on', async (t) => {
            await pool.query(
                `update scanwire.workspaces set import_id = gen_random_uuid(), import_until = scanwire.now() + interval '1 hour'`,
            );
            let now = performance.now();
            // One that stands still, as one that was set back does for a while.
            const clock = (): Date => new Date(1_790_000_000_000);
            const monotonic = mock.method(performance, 'now', () => {
                now += 4_000;
                return now;
            });
            t.teardown(() => monotonic.mock.restore());
            const late = { code: 'UNAVAILABLE', message: /An import is at work in the workspace/ };
            await t.rejects(postgresRecords({ pool, clock }).add([record()], { enrich: { workspace: 'default' } }), late);
            await t.rejects(postgresInventory({ pool, clock }).importHosts('default', each([known])), late);
        });

        /** The hosts of the workspace with their services, as readers see them. */
        async function seen(workspaceId: number) {
            const hosts = await all(store.hosts, [workspaceId]);
            const [first, ...others] = hosts;
            return first === undefined ? [] : [{ ...first, services: await all(store.services, [workspaceId, first.id]) }, ...others];
        }
    });
}
