import { setImmediate as turn } from 'node:timers/promises';
import t, { type Test } from 'tap';
import { openMemoryDatabase } from '../../adapters/pglite/index.ts';
import { migrate, type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import type { Filters, Selection } from '../../lib/inventory/selection.ts';
import type { Collection } from '../../lib/inventory/store.ts';

const HOSTS = 30_000;

type Row = { readonly id: number };

/** Between the statements for as many pieces as {@link HOSTS} make, of at most twice the length of those before, the first of 1,000. */
const LEAST_ANSWERS = 4;

/** Hosts of two workspaces in turn, the second half of which has been changed in the opposite order, with a service each. */
const FILL = `
insert into scanwire.workspaces (name) values ('first'), ('second');
insert into scanwire.hosts (workspace_id, address, name, state, updated_at)
select w.id, '10.0.0.0'::inet + n, 'host-' || n, case when n % 3 = 0 then 'down' else 'alive' end,
    timestamptz '2026-01-01 00:00Z' + case when n > ${HOSTS / 2} then ${HOSTS} - n else n end / 7 * interval '1 s'
from generate_series(1, ${HOSTS}) n join scanwire.workspaces w on w.name = 'second' or w.name = 'first' and n % 10 = 0 order by n, w.id;
insert into scanwire.services (host_id, port, proto, state, name)
select id, 22, 'tcp', 'open', 'ssh ' || host(address) from scanwire.hosts order by id;
analyze`;

const range = (first: string, last: string) => ({ first, last });

/** What few rows fulfil, and what many do: with all rows each is read to the end. */
const SELECTIONS: Readonly<Record<string, NonNullable<Selection['where']>>> = {
    'a search for one': { search: 'host-29999' },
    'a search for some': { search: '-1234' },
    'a state': { state: 'down' },
    'a large range of addresses': { address: range('10.0.0.0', '10.255.255.255') },
    'a network, and a state': { address: range('10.0.64.0', '10.0.95.255'), state: 'down' },
    'a small one, and a state': { address: range('10.0.100.0', '10.0.100.255'), state: 'down' },
    'changes, and a search': { updated_since: new Date('2026-01-01T00:10:00Z'), search: '9' },
    'changes in a network': { updated_since: new Date('2026-01-01'), address: range('10.0.64.0', '10.0.95.255') },
};

/** A database whose second workspace has all the hosts. */
async function filled(t: Test) {
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    await pool.query(FILL);
    const { rows } = await pool.query<{ id: number }>(`select id from scanwire.workspaces where name = 'second'`);
    return { pool, workspace: rows[0]?.id ?? 0 };
}

t.test('a search in the embedded database gives way to others', async (t) => {
    const { pool, workspace } = await filled(t);
    const { hosts, workspaceServices } = postgresInventory({ pool });
    const count = async (of: Collection<Row>, where: Filters) => await of.count?.([workspace], where);
    const inOne = postgresInventory({ pool: { query: pool.query.bind(pool), connect: pool.connect.bind(pool) } });

    for (const [what, read] of [
        ['a search for what is not there', () => idsOf(hosts, workspace, { where: { search: 'nothing' } })],
        ['a search behind changes', () => idsOf(hosts, workspace, { where: { search: 'nothing', updated_since: new Date(0) } })],
        ['one of services', () => idsOf(workspaceServices, workspace, { where: { search: 'nothing' } })],
        ['a count', () => count(hosts, {})],
        ['a count of services', () => count(workspaceServices, { state: 'open' })],
    ] as const) {
        const answers = await answersUntil(pool, read());
        t.ok(answers >= LEAST_ANSWERS, `${what}: ${answers} others were answered meanwhile`);
    }

    for (const [what, where] of Object.entries(SELECTIONS)) {
        t.equal(await count(hosts, where), await count(inOne.hosts, where), `${what}: their count`);
        const limited = { where, limit: 1_100 };
        t.same(await idsOf(hosts, workspace, limited), await idsOf(inOne.hosts, workspace, limited), `${what}: a page of them`);
    }
    for (const where of [
        { search: '0.100' },
        { address: range('10.0.32.0', '10.0.95.255') },
        { address: range('10.0.100.0', '10.0.100.7') },
    ]) {
        const services = await idsOf(workspaceServices, workspace, { where });
        t.same(services, await idsOf(inOne.workspaceServices, workspace, { where }), 'services');
        t.equal(await count(workspaceServices, where), services.length, 'their count');
    }
});

t.test('a listing that wants most rows looks for the ends of no more of them than it looks through', async (t) => {
    const { pool, workspace } = await filled(t);
    let passed = 0;
    const { hosts } = postgresInventory({ pool: noting(pool, (offset) => (passed += offset)) });
    const ids = await idsOf(hosts, workspace, { where: { state: 'alive', updated_since: new Date(0) } });
    t.equal(ids.length, (HOSTS / 3) * 2);
    t.ok(passed > HOSTS / 2 && passed < 3 * HOSTS, `${passed} rows were passed over to list ${ids.length} of ${HOSTS}`);
});

/** Tells the `offset` of each statement that has one: rows of an index that are passed over. */
function noting(pool: PoolLike, onOffset: (rows: number) => void): PoolLike {
    const note = (text: string): void => onOffset(Number(/ offset (\d+) /.exec(text)?.[1] ?? 0));
    return {
        embedded: true,
        query(text: string, values?: unknown[]) {
            note(text);
            return pool.query(text, values);
        },
        async connect() {
            const client = await pool.connect();
            return {
                query(text: string, values?: unknown[]) {
                    note(text);
                    return client.query(text, values);
                },
                on: client.on.bind(client),
                removeListener: client.removeListener.bind(client),
                release: client.release.bind(client),
            };
        },
    } as PoolLike;
}

async function idsOf({ select }: Collection<Row>, workspace: number, selection: Selection): Promise<readonly number[]> {
    const ids: number[] = [];
    for await (const rows of select?.([workspace], selection) ?? []) {
        ids.push(...rows.map(({ id }) => id));
    }
    return ids;
}

/** How many of the statements that follow each other are answered until something has ended. */
async function answersUntil(pool: PoolLike, work: Promise<unknown>): Promise<number> {
    let hasEnded = false;
    const ended = work.finally(() => {
        hasEnded = true;
    });
    let answers = 0;
    while (!hasEnded) {
        await pool.query('select');
        answers += 1;
        await turn();
    }
    await ended;
    return answers;
}
