import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import type { Filters } from '../../lib/inventory/selection.ts';
import { leasesEnd } from '../adapters/postgres/failing-pools.ts';
import { all, each } from '../adapters/postgres/imports/imported.ts';
import { migratedMemory } from '../support/migrated-database.ts';

/** More than are looked through by one statement. */
const REMOVED = 3_000;

/** A pool that keeps what it was asked to select. */
function watched(pool: PoolLike) {
    const asked: string[] = [];
    return {
        asked,
        pool: {
            ...{ embedded: true, query: pool.query.bind(pool) },
            async connect() {
                const client = await pool.connect();
                return {
                    query: async <Row>(text: string, values?: unknown[]) => {
                        asked.push(text);
                        return await client.query<Row>(text, values);
                    },
                    on: client.on.bind(client),
                    removeListener: client.removeListener.bind(client),
                    release: client.release.bind(client),
                };
            },
        },
    };
}

t.test('on the embedded database a page does not pass over all hosts that are going to be deleted by one statement', async (t) => {
    const database = await migratedMemory();
    t.teardown(() => database.end());
    const { pool, asked } = watched(database);
    const store = postgresInventory({ pool });
    const { workspace } = await store.importHosts('default', each([]));
    await database.query(
        `insert into scanwire.hosts (workspace_id, address, state, created_at, updated_at)
            select $1, '10.0.0.0'::inet + n, 'alive', now(), now() from generate_series(1, $2) n`,
        [workspace.id, REMOVED + 2],
    );
    await database.query(
        `insert into scanwire.services (host_id, port, proto, state, name, created_at, updated_at)
            select id, 22, 'tcp', 'open', 'ssh', now(), now() from scanwire.hosts`,
    );
    const stays = (await all(store.hosts, [workspace.id])).slice(-2).map(({ id }) => id);
    const page = async (list: 'hosts' | 'workspaceServices', where: Filters = {}) => {
        asked.splice(0);
        const hosts: number[] = [];
        for await (const batch of present(store[list].select)([workspace.id], { where, limit: 2 })) {
            hosts.push(...batch.map((row) => ('host_id' in row ? row.host_id : row.id)));
        }
        return { hosts, statements: asked.filter((text) => text.startsWith('select')).length };
    };
    t.match(await page('hosts'), { hosts: { length: 2 }, statements: 2 }, 'one, and the question whether there are such hosts');

    await database.query(
        `insert into scanwire.staged_hosts (workspace_id, host_id, updated_at, fields, removed)
            select $1, id, now(), '{}', true from scanwire.hosts order by id limit $2`,
        [workspace.id, REMOVED],
    );
    await database.query(
        'update scanwire.workspaces set staged_shown = true, import_id = gen_random_uuid(), import_until = now() where id = $1',
        [workspace.id],
    );
    for (const [list, where] of [
        ['hosts', {}],
        ['hosts', { updated_since: new Date(0) }],
        ['hosts', { address: { first: '10.0.0.0', last: '10.0.255.255' } }],
        ['workspaceServices', {}],
    ] as const) {
        const { hosts, statements } = await page(list, where);
        t.same(hosts, stays, JSON.stringify([list, where]));
        t.ok(statements > 4, `${statements} statements`);
    }

    await leasesEnd(database);
    await store.importHosts('default', each([]));
    t.match(await page('hosts'), { hosts: stays, statements: 2 });
});
