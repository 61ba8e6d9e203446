import t from 'tap';
import { underWay } from '../../../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import { databases, startAfresh } from '../databases.ts';
import { dyingAt, failingOnceAt, leasesEnd, losingTheAnswerTo, setAhead } from '../failing-pools.ts';
import { all, each, manyHosts } from './imported.ts';

const ssh: ServiceInput = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null };
const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' };
const kept: HostInput = { address: '192.0.2.7', name: 'kept', services: [ssh, https] };
const gone: HostInput = { address: '192.0.2.8', name: 'gone', services: [ssh] };
const REPLACE = { replace: true } as const;
/** The state after which nothing is left to do. */
const NOTHING = { hosts: 0, services: 0, named: 0, workspaces: 0 };

for (const { name, openMigrated } of databases) {
    t.test(`imports that replace, on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(async () => {
            await startAfresh(pool);
            await setAhead(pool, 0);
        });
        const store = postgresInventory({ pool });

        for (const [stage, statement, times] of [
            ['hosts are stored', /json_to_recordset\(hosts\)/, 3],
            ['it is noted what they name', /insert into scanwire.import_named/, 2],
            ['what is gone is marked', /services_marked/, 2],
            ['they are shown', /staged_shown = true/, 1],
        ] as const) {
            t.test(`remove nothing when their process dies while ${stage}`, async (t) => {
                const workspace = await fill();
                const before = await seen(workspace);
                const dying = postgresInventory({ pool: dyingAt(pool, statement, times) });
                await t.rejects(dying.importHosts('default', each([{ ...kept, services: [ssh] }, ...manyHosts(300, 'new')]), REPLACE), {
                    message: 'killed',
                });
                t.same(await seen(workspace), before);

                await leasesEnd(pool);
                await store.importHosts('default', each([kept]));
                t.same(await seen(workspace), before);
                t.same(await leftovers(pool), NOTHING);
            });
        }

        t.test('are whole from the moment in which they are shown', async (t) => {
            const workspace = await fill();
            const failing = postgresInventory({ pool: failingOnceAt(pool, /delete from scanwire.staged_hosts/) });
            const input = [{ ...kept, services: [https] }, { address: '192.0.2.9' }];
            const { hosts, services } = await failing.importHosts('default', each(input), REPLACE);
            t.same([hosts, services], [importCounts({ new: 1, changed: 1, gone: 301 }), importCounts({ unchanged: 1, gone: 2 })]);
            const shown = await seen(workspace);
            t.match(shown.hosts, [{ name: 'kept', service_count: 1, note_count: 1, vuln_count: 1 }, { address: '192.0.2.9' }]);
            t.match(shown.services, [{ port: 443 }]);
            t.equal(shown.services.length, 1);
            t.same([shown.notes.length, shown.vulns.length, shown.sessions.length], [1, 1, 1]);
            t.equal(await store.hosts.get([workspace], shown.hosts[0]?.id ?? 0).then((host) => host?.service_count), 1);
            t.equal(await store.hosts.count?.([workspace], {}), 2);
            t.equal(await store.hosts.get([workspace], 2), null);

            await store.importHosts('default', each([]));
            t.same(await seen(workspace), shown);
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('have succeeded where only the answer to showing them was lost', async (t) => {
            const workspace = await fill();
            const late = postgresInventory({ pool: losingTheAnswerTo(pool, /staged_shown = true/) });
            const { hosts } = await late.importHosts('default', each([kept]), REPLACE);
            t.same(hosts, importCounts({ unchanged: 1, gone: 301 }));
            t.same((await seen(workspace)).hosts.length, 1);
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('take nothing for gone when what they named is not known any more', async (t) => {
            const workspace = await fill();
            const before = await seen(workspace);
            await pool.query(`create function forget() returns trigger language plpgsql as $$ begin
                delete from scanwire.import_named where host_id = new.host_id and service_id = new.service_id; return null;
            end $$`);
            t.teardown(() => pool.query('drop function forget cascade'));
            await pool.query(
                'create trigger forget after insert on scanwire.import_named for each row when (new.host_id = 2) execute function forget()',
            );
            await t.rejects(store.importHosts('default', each([kept, gone]), REPLACE), { code: 'CONFLICT' });
            t.same(await seen(workspace), before);
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('write no row of what is so already', async (t) => {
            await fill();
            const input = [kept, gone, ...manyHosts(300)];
            const written = async (): Promise<unknown> =>
                (await pool.query('select xmin::text from scanwire.hosts union all select xmin::text from scanwire.services')).rows;
            const before = await written();
            const { hosts, services } = await store.importHosts('default', each(input), REPLACE);
            t.same([hosts, services], [importCounts({ unchanged: 302 }), importCounts({ unchanged: 3 })]);
            t.same(await written(), before);
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('are seen whole or not at all by whoever reads meanwhile', async (t) => {
            const workspace = await fill();
            const states: Record<'hosts' | 'services' | 'notes', Set<unknown>> = {
                hosts: new Set(),
                services: new Set(),
                notes: new Set(),
            };
            const look = async (): Promise<void> => {
                states.hosts.add((await store.hosts.list([workspace])[Symbol.asyncIterator]().next()).value?.[1]?.name);
                states.services.add((await all(store.workspaceServices, [workspace])).length);
                states.notes.add((await all(store.workspaceNotes, [workspace])).length);
            };
            async function* input(): AsyncIterable<HostInput> {
                yield { ...kept, services: [https] };
                // However slow the machine is, this look is one meanwhile.
                await look();
                yield* manyHosts(300, 'new');
            }
            const importing = underWay(store.importHosts('default', input(), REPLACE));
            while (!importing.ended()) {
                await look();
            }
            await importing.result;
            await look();
            t.same([...states.hosts], ['gone', 'new']);
            t.same([...states.services], [3, 1]);
            t.same([...states.notes], [3, 1]);
        });

        /** A workspace with hosts that stay and hosts that are going to go, and something below each. Resolves to its id. */
        async function fill(): Promise<number> {
            const { workspace } = await store.importHosts('default', each([kept, gone, ...manyHosts(300)]));
            await pool.query(`insert into scanwire.notes (workspace_id, host_id, service_id) values
                (${workspace.id}, 1, null), (${workspace.id}, 1, 1), (${workspace.id}, 2, null)`);
            await pool.query(`insert into scanwire.vulns (host_id, service_id, name) values (1, 1, 'a'), (1, 2, 'b'), (2, 3, 'c')`);
            await pool.query(`insert into scanwire.sessions (host_id, opened_at) values (1, now()), (2, now())`);
            return workspace.id;
        }

        /** All of the workspace, as readers see it. */
        async function seen(workspace: number) {
            return {
                hosts: await all(store.hosts, [workspace]),
                services: await all(store.workspaceServices, [workspace]),
                notes: await all(store.workspaceNotes, [workspace]),
                vulns: await all(store.workspaceVulns, [workspace]),
                sessions: await all(store.workspaceSessions, [workspace]),
            };
        }
    });
}

async function leftovers(pool: PoolLike): Promise<unknown> {
    const { rows } = await pool.query(`select (select count(*)::integer from scanwire.staged_hosts) as hosts,
        (select count(*)::integer from scanwire.staged_services) as services,
        (select count(*)::integer from scanwire.import_named) as named,
        (select count(*)::integer from scanwire.workspaces where import_id is not null or generation < 0 or staged_shown) as workspaces`);
    return rows[0];
}
