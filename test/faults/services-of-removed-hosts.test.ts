import t from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { FilterName, Filters } from '../../lib/inventory/selection.ts';
import type { SelectableCollection } from '../../lib/inventory/store.ts';
import { databases } from '../adapters/postgres/databases.ts';
import { dyingAt, leasesEnd } from '../adapters/postgres/failing-pools.ts';
import { all, each } from '../adapters/postgres/imports/imported.ts';

const ssh = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null } as const;
const onSsh = { port: 22, proto: 'tcp' } as const;
const host = (address: string): HostInput => ({
    address,
    name: 'x',
    services: [ssh, { ...ssh, port: 2222 }],
    notes: [
        { ntype: 'a', data: {} },
        { ntype: 'b', data: {}, ...onSsh },
    ],
    vulns: [
        { name: 'x', info: null },
        { name: 'xx', info: null, ...onSsh },
    ],
});
const EARLIER = new Date('2020-01-01T00:00:00Z');
const FILTERED: readonly Filters[] = [
    {},
    { updated_since: EARLIER },
    { search: 's' },
    { search: 'x' },
    { address: { first: '10.0.0.0', last: '10.0.0.255' } },
    { address: { first: '10.0.0.0', last: '10.255.255.255' } },
];

type Ids = readonly number[];
type Rows = SelectableCollection<{ readonly id: number }>;

/** What a collection says, by the way in which it is read: ids, and how many. */
async function read(collection: Rows, path: Ids, known: Ids) {
    const list = (await all(collection, path)).map(({ id }) => id);
    const text: number[] = [];
    for await (const batch of collection.listText?.(path) ?? []) {
        const isText = typeof batch === 'string' || batch instanceof Uint8Array;
        const found: readonly { readonly id: number }[] = isText ? JSON.parse(`[${Buffer.from(batch)}]`) : batch;
        text.push(...found.map(({ id }) => id));
    }
    const rows = (await Promise.all(known.map((id) => collection.get(path, id)))).flatMap((row) => row?.id ?? []);
    const selected: [where: Filters, page: Ids, count: number | undefined][] = [];
    const isKnown = (where: Filters): boolean => Object.keys(where).every((name) => collection.filters?.includes(name as FilterName));
    for (const where of FILTERED.filter(isKnown)) {
        const page: number[] = [];
        for await (const batch of collection.select(path, { where, limit: 3 })) {
            page.push(...batch.map(({ id }) => id));
        }
        selected.push([where, page, await collection.count?.(path, where)]);
    }
    return { list, text: collection.listText === undefined ? list : text, rows, selected };
}

for (const { name, openMigrated } of databases) {
    t.test(`whoever reads sees nothing of hosts that are removed and not deleted yet, on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        const store = postgresInventory({ pool });
        const { workspace } = await store.importHosts('default', each(['10.0.0.1', '10.0.0.2', '10.0.1.1'].map(host)));
        await pool.query(`insert into scanwire.sessions (host_id, opened_at, "desc") select id, now(), 'shell' from scanwire.hosts`);
        const [first] = await all(store.hosts, [workspace.id]);
        const id = first?.id ?? 0;
        const service = (await all(store.services, [workspace.id, id]))[0]?.id ?? 0;
        const collections = {
            hosts: [store.hosts, [workspace.id]],
            services: [store.services, [workspace.id, id]],
            notes: [store.notes, [workspace.id, id]],
            sessions: [store.sessions, [workspace.id, id]],
            vulns: [store.vulns, [workspace.id, id, service]],
            hostVulns: [store.hostVulns, [workspace.id, id]],
            workspaceServices: [store.workspaceServices, [workspace.id]],
            workspaceNotes: [store.workspaceNotes, [workspace.id]],
            workspaceSessions: [store.workspaceSessions, [workspace.id]],
            workspaceVulns: [store.workspaceVulns, [workspace.id]],
        } satisfies Readonly<Record<string, readonly [object, Ids]>>;
        const known = new Map<string, Ids>();
        const seen = async () => {
            const ways: Record<string, Awaited<ReturnType<typeof read>>> = {};
            for (const [what, [collection, path]] of Object.entries(collections)) {
                ways[what] = await read(collection as unknown as Rows, path, known.get(what) ?? []);
            }
            return ways;
        };
        for (const [what, { list, text }] of Object.entries(await seen())) {
            t.ok(list.length > 0 && text.length > 0, what);
            known.set(what, list);
        }

        const dying = postgresInventory({ pool: dyingAt(pool, /^with looked as materialized \(\s+select ctid/, 1) });
        const address = { first: '10.0.0.0', last: '10.0.0.255' };
        await dying.removeHosts('default', { address }).catch(() => undefined);
        t.match((await pool.query('select staged_shown from scanwire.workspaces where id = $1', [workspace.id])).rows, [
            { staged_shown: true },
        ]);
        t.match((await pool.query('select count(*)::integer from scanwire.hosts')).rows, [{ count: 3 }], 'and none is deleted');
        const between = await seen();
        await leasesEnd(pool);
        await store.importHosts('default', each([]));
        t.match((await pool.query('select count(*)::integer from scanwire.hosts')).rows, [{ count: 1 }]);
        t.strictSame(between, await seen(), 'nor is there any difference once they are deleted');
        for (const what of ['services', 'notes', 'sessions', 'vulns', 'hostVulns']) {
            t.match(between[what], { list: [], text: [], rows: [] });
            t.notOk(
                between[what]?.selected.some(([, page, count]) => page.length > 0 || count !== 0),
                what,
            );
        }
    });
}
