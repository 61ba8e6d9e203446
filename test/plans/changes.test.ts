import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import type { Selection } from '../../lib/inventory/selection.ts';
import type { InventoryStore } from '../../lib/inventory/store.ts';
import { each } from '../adapters/postgres/imports/imported.ts';
import { explainedDatabase } from './executed-plans.ts';

/** Hosts with so many services each, changed at two times. */
const HOSTS = 24;
const SERVICES = 500;
const ALL = HOSTS * SERVICES;

const services = Array.from({ length: SERVICES }, (_, index) => ({ port: index + 1, proto: 'tcp' as const, state: 'open' as const }));
const SINCE = new Date('2026-01-01T00:01:00Z');
const SELECTIONS: readonly Selection[] = [
    { where: { updated_since: SINCE } },
    { where: { updated_since: new Date(0) }, limit: 100 },
    { where: { updated_since: SINCE }, after: { id: 3_000, updated_at: SINCE }, limit: 700 },
    { where: { updated_since: SINCE, state: 'open' }, hosts: [2, 5], limit: 600 },
];

t.test('looks the order of changes up range by range where everybody waits meanwhile', async (t) => {
    const { connection } = await explainedDatabase(t);
    let now = Date.parse('2026-01-01T00:00:00Z');
    const clock = (): Date => new Date(now);
    const embedded = Object.assign(connection.pool, { embedded: true });
    const [store, memory] = [postgresInventory({ pool: embedded, clock }), memoryInventory({ clock })];
    for (const place of [0, 1]) {
        now += 60_000;
        for (const one of [store, memory]) {
            const hosts = Array.from({ length: HOSTS / 2 }, (_, index) => ({ address: `192.0.2.${2 * index + place + 1}`, services }));
            await one.importHosts('default', each(hosts));
        }
    }
    // As in a large table, of which a range is a small part.
    await connection.pool.query('set enable_seqscan = off; set enable_bitmapscan = off');
    for (const selection of SELECTIONS) {
        const read: (readonly number[])[] = [];
        const executed = await connection.each(async () => {
            read.push(await idsOf(store, selection));
        });
        t.strictSame(read[0], await idsOf(memory, selection), JSON.stringify(selection));
        const looked = executed.map(({ scans }) =>
            scans.filter(({ table }) => table === 'services').reduce((sum, { rows }) => sum + rows, 0),
        );
        const most = Math.max(...looked);
        // A range has at most twice as many rows as the one before.
        t.ok(most <= (2 / 3) * ALL, `${most} of ${ALL} services at once, ${JSON.stringify(selection)}`);
    }
});

t.test('sorts the services of a workspace once for a listing by their changes', async (t) => {
    const { connection } = await explainedDatabase(t);
    const store = postgresInventory({ pool: connection.pool });
    await store.importHosts('default', each(Array.from({ length: HOSTS }, (_, index) => ({ address: `192.0.2.${index + 1}`, services }))));
    await connection.pool.query('analyze');
    const executed = await connection.each(() => idsOf(store, { where: { updated_since: new Date(0) } }));
    const read = executed
        .flatMap(({ scans }) => scans.filter(({ table }) => table === 'services'))
        .reduce((sum, { rows }) => sum + rows, 0);
    // Once to be sorted, once to be told.
    t.ok(read <= 3 * ALL, `${read} for ${ALL} services`);
});

async function idsOf({ workspaceServices }: Pick<InventoryStore, 'workspaceServices'>, selection: Selection): Promise<readonly number[]> {
    const ids: number[] = [];
    for await (const rows of present(present(workspaceServices).select)([1], selection)) {
        ids.push(...rows.map(({ id }) => id));
    }
    return ids;
}
