import t from 'tap';
import { underWay } from '../../../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import { databases, startAfresh } from '../databases.ts';
import { dyingAt, failingOnceAt, leasesEnd, setAhead } from '../failing-pools.ts';
import { all, each, manyHosts } from './imported.ts';

const ssh: ServiceInput = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null };
const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' };
const note = (text: string) => ({ ntype: 'scanner.text', data: { text } });
const known: HostInput = {
    address: '192.0.2.7',
    services: [ssh, https],
    notes: [note('before'), { ...note('on ssh'), port: 22, proto: 'tcp' }, { ...note('same'), ntype: 'same' }],
    vulns: [
        { name: 'whole', info: 'before' },
        { name: 'on ssh', info: null, port: 22, proto: 'tcp' },
    ],
};
const changed: HostInput = {
    address: '192.0.2.7',
    services: [ssh, https],
    notes: [note('after'), { ...note('on https'), port: 443, proto: 'tcp' }, { ...note('same'), ntype: 'same' }],
    vulns: [
        { name: 'whole', info: 'after' },
        { name: 'more', info: null },
    ],
};
const others = manyHosts(300).map((host, index) => ({ ...host, notes: [note(`${index}`)], vulns: [{ name: 'x', info: null }] }));

/** Nothing that is not shown, and nothing that waits. */
const NOTHING = { hidden: 0, staged: 0, hosts: 0, workspaces: 0, named: 0 };

for (const { name, openMigrated } of databases) {
    t.test(`staged notes and vulnerabilities on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(async () => {
            await startAfresh(pool);
            await setAhead(pool, 0);
        });
        const store = postgresInventory({ pool });

        for (const [stage, statement, times, replace] of [
            ['are stored', /json_to_recordset\(findings -> 'vulns'/, 2, false],
            ['are shown', /staged_shown = true/, 1, false],
            ['are marked', /notes_marked/, 2, true],
            ['that replace are shown', /staged_shown = true/, 1, true],
        ] as const) {
            t.test(`are as before when their process dies while they ${stage}`, async (t) => {
                const { workspace } = await store.importHosts('default', each([known, ...others]));
                const before = await seen(workspace.id);
                const dying = postgresInventory({ pool: dyingAt(pool, statement, times) });
                const input = [changed, ...others.slice(0, 200).map((host) => ({ ...host, notes: [note('other'), note('more')] }))];
                await t.rejects(dying.importHosts('default', each([...input, ...manyHosts(300, 'x')]), { replace }), { message: 'killed' });
                t.same(await seen(workspace.id), before);

                await leasesEnd(pool);
                await store.importHosts('default', each([]));
                t.same(await seen(workspace.id), before);
                t.same(await leftovers(pool), NOTHING);
            });
        }

        for (const replace of [false, true]) {
            t.test(`are whole from the moment in which they are shown${replace ? ', also where they replace' : ''}`, async (t) => {
                const { workspace } = await store.importHosts('default', each([known, ...others]));
                const failing = postgresInventory({ pool: failingOnceAt(pool, /delete from scanwire.staged_hosts/) });
                const { hosts, notes, vulns } = await failing.importHosts('default', each([changed]), { replace });
                const gone = replace ? { gone: 300 } : {};
                t.same(hosts, importCounts({ changed: 1, ...gone }));
                t.same(notes, importCounts({ new: 1, changed: 1, unchanged: 1, ...(replace && { gone: 301 }) }));
                t.same(vulns, importCounts({ new: 1, changed: 1, ...(replace && { gone: 301 }) }));
                const shown = await seen(workspace.id);
                t.match(shown.hosts[0], replace ? { note_count: 3, vuln_count: 2 } : { note_count: 4, vuln_count: 3 });
                t.equal(shown.hosts.length, replace ? 1 : 301);
                t.same(
                    shown.notes.filter(({ host_id }) => host_id === shown.hosts[0]?.id).map(({ data: { text } }) => text),
                    replace ? ['after', 'same', 'on https'] : ['after', 'on ssh', 'same', 'on https'],
                );
                t.match(shown.vulns[0], { name: 'whole', info: 'after' });
                t.same(await store.workspaceNotes.get([workspace.id], shown.notes[0]?.id ?? 0), shown.notes[0]);
                t.equal(await store.workspaceVulns.count?.([workspace.id], { search: 'AFTER' }), 1);

                await store.importHosts('default', each([]));
                t.same(await seen(workspace.id), shown);
                t.same(await leftovers(pool), NOTHING);
            });
        }

        t.test('write no row of what is so already', async (t) => {
            const input = [known, ...others];
            await store.importHosts('default', each(input));
            const written = async (): Promise<unknown> =>
                (
                    await pool.query(`select xmin::text from scanwire.notes union all select xmin::text from scanwire.vulns
                        union all select xmin::text from scanwire.hosts`)
                ).rows;
            const before = await written();
            const { notes } = await store.importHosts('default', each(input), { replace: true });
            t.same(notes, importCounts({ unchanged: 303 }));
            t.same(await written(), before);
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('are seen whole or not at all by whoever reads meanwhile', async (t) => {
            // Few enough for one batch of a list, which is a statement.
            const few = others.slice(0, 100);
            const { workspace } = await store.importHosts('default', each([known, ...few]));
            const states = new Set<string>();
            const look = async (): Promise<void> => {
                const [{ data = {} } = {}, ...rest] = await all(store.workspaceNotes, [workspace.id]);
                states.add(`${data.text} ${rest.length}`);
            };
            await look();
            const importing = underWay(store.importHosts('default', each([changed, ...few, ...manyHosts(300, 'x')])));
            while (!importing.ended()) {
                await look();
            }
            await importing.result;
            await look();
            t.same([...states], ['before 102', 'after 103']);
        });

        t.test('are refused where the database takes a value of theirs for none', async (t) => {
            const bad = { ...known, vulns: [{ name: 'x'.repeat(256), info: null }] };
            await t.rejects(store.importHosts('default', each([bad])), { code: 'INVALID_INPUT' });
            t.same(await leftovers(pool), NOTHING);
        });

        t.test('say which ids have run out', async (t) => {
            const { workspace } = await store.importHosts('default', each([{ address: '192.0.2.1' }]));
            for (const table of ['hosts', 'services', 'notes', 'vulns']) {
                await pool.query(`alter table scanwire.${table} alter column id restart with 2147483647`);
                await t.rejects(store.importHosts('default', each([known, { ...known, address: '192.0.2.8' }])), {
                    code: 'CONFLICT',
                    message: new RegExp(`^No id is left for new ${table}: 2147483647 is the largest`),
                });
                await pool.query(`alter table scanwire.${table} alter column id restart with 100`);
            }
            t.equal((await seen(workspace.id)).hosts.length, 1);
            t.same(await leftovers(pool), NOTHING);
        });

        /** All of the workspace, as readers see it. */
        async function seen(workspace: number) {
            return {
                hosts: await all(store.hosts, [workspace]),
                services: await all(store.workspaceServices, [workspace]),
                notes: await all(store.workspaceNotes, [workspace]),
                vulns: await all(store.workspaceVulns, [workspace]),
            };
        }
    });
}

async function leftovers(pool: PoolLike): Promise<unknown> {
    const { rows } = await pool.query(`select
        (select count(*)::integer from (select host_id, generation from scanwire.notes union all select host_id, generation from scanwire.vulns) rows
            join scanwire.hosts on hosts.id = host_id join scanwire.workspaces on workspaces.id = hosts.workspace_id
            where rows.generation > workspaces.generation) as hidden,
        (select count(*)::integer from (select staged from scanwire.notes union all select staged from scanwire.vulns) rows
            where staged is not null) as staged,
        (select count(*)::integer from scanwire.staged_hosts) as hosts,
        (select count(*)::integer from scanwire.workspaces where import_id is not null or generation < 0 or staged_shown) as workspaces,
        (select count(*)::integer from scanwire.import_named) as named`);
    return rows[0];
}
