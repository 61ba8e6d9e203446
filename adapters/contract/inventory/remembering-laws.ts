import assert from 'node:assert/strict';
import type { HostInput } from '../../../lib/inventory/host.ts';
import { importCounts } from '../../../lib/inventory/import-counts.ts';
import type { ImportOptions, ImportOrigin, ImportSummary } from '../../../lib/inventory/store.ts';
import { present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { dns, fullHost, https, type InventoryFixture, type InventoryLaws, manyHosts, nextMillisecond, rows } from './fixture.ts';

type Store = InventoryFixture['store'];

/** One is down, which an import does not see; one is told to those alone who know it. */
const NAMED: readonly HostInput[] = [
    { address: '192.0.2.1', services: [dns, https], closed_ports: { tcp: [[1, 50]] } },
    { ...fullHost, services: [dns], notes: [{ ntype: 'a', data: {} }], vulns: [{ name: 'b', info: null }] },
    { address: '192.0.2.2', state: 'down', if_known: true },
    ...manyHosts(300),
];

/** An origin that has come, and how often it was asked whether it has. */
function originOf(id: string, more: Partial<ImportOrigin> = {}): { readonly origin: ImportOrigin; asked(): number } {
    let asked = 0;
    const arrived = async (): Promise<void> => {
        asked += 1;
    };
    return { origin: { id, arrived, ...more }, asked: () => asked };
}

interface Told {
    readonly summary: ImportSummary;
    /** Whether the store has looked at the hosts. */
    readonly isRead: boolean;
}

/** Imports hosts, or what stands for them. */
async function told(store: Store, hosts: readonly HostInput[], options: ImportOptions = {}): Promise<Told> {
    let isRead = false;
    async function* read(): AsyncIterable<HostInput> {
        isRead = true;
        yield* hosts;
    }
    const summary = await store.importHosts('default', read(), options);
    return { summary, isRead };
}

const FIRST = originOf('first').origin;

/** The host of that address, with when it was seen where the store tells that. */
async function hostOf({ hosts }: Store, workspaceId: number, address: string) {
    const extras = hosts.extras?.includes('last_seen') ? (['last_seen'] as const) : [];
    const list = hosts.select === undefined ? hosts.list([workspaceId]) : hosts.select([workspaceId], { extras });
    for await (const batch of list) {
        const found = batch.find((host) => host.address === address);
        if (found !== undefined) {
            return found;
        }
    }
    return assert.fail(`There is no host ${address}`);
}

/** What an import does that was made before. */
const rememberingLaws: Laws<InventoryFixture> = {
    async 'does not look at the hosts of an import that was made before, and says that all are unchanged'({ store }) {
        const first = await told(store, NAMED, { origin: FIRST });
        assert.ok(first.isRead);
        const { workspace } = first.summary;
        const before = await rows(store.hosts, [workspace.id]);

        const { origin, asked } = originOf('first');
        const again = await told(store, [], { origin });
        assert.deepEqual([again.isRead, asked()], [false, 1]);
        assert.deepEqual(again.summary, (await told(store, NAMED)).summary);
        assert.deepEqual(again.summary.hosts, importCounts({ unchanged: 302 }));
        assert.deepEqual(await rows(store.hosts, [workspace.id]), before);
        assert.equal((await told(store, [], { origin })).isRead, false, 'nor after imports that change nothing');
    },

    async 'looks at them as soon as anything is different, and else not'({ store }) {
        const { workspace } = (await told(store, NAMED, { origin: FIRST })).summary;
        const isRead = async (options: ImportOptions = {}, hosts = NAMED): Promise<boolean> =>
            (await told(store, hosts, { origin: FIRST, ...options })).isRead;
        assert.equal(await isRead({ origin: originOf('second').origin }), true, 'another origin');
        assert.equal(await isRead(), false);

        await told(store, [{ address: '192.0.2.1', services: [{ ...dns, info: 'other' }] }]);
        assert.equal(await isRead(), true, 'a service was changed by another import');
        assert.equal(await isRead(), false);
        assert.equal((await told(store, [], { origin: originOf('second').origin })).isRead, true, 'that was remembered before');

        await told(store, [{ address: '192.0.2.2' }]);
        assert.equal(await isRead(), true, 'a host is known by now');
        assert.deepEqual((await told(store, [], { origin: FIRST })).summary.hosts, importCounts({ unchanged: 303 }));
        if (store.replaces === true) {
            assert.equal(await isRead({ replace: true }), true, 'it replaces');
            assert.equal(await isRead({ replace: true }), false);
        }
        if (store.updateWorkspace !== undefined) {
            await store.updateWorkspace('default', { boundary: '0.0.0.0/0, ::/0', limit_to_network: true });
            assert.equal(await isRead(), true, 'the workspace has another boundary');
        }
        if (store.removeHosts !== undefined) {
            assert.equal(await isRead(), false);
            await store.removeHosts('default', { address: { first: '192.0.2.1', last: '192.0.2.1' } });
            assert.equal(await isRead(), true, 'a host was removed');
            await hostOf(store, workspace.id, '192.0.2.1');
        }
        if (store.removeWorkspace !== undefined) {
            await told(store, NAMED, { origin: FIRST });
            await store.removeWorkspace('default');
            assert.equal(await isRead(), true, 'the workspace was removed');
        }
    },

    async 'imports nothing of what has not come, though it was imported before'({ store }) {
        const { workspace } = (await told(store, NAMED, { origin: FIRST })).summary;
        const before = await hostOf(store, workspace.id, '192.0.2.1');
        const cut = async (): Promise<void> => {
            throw new Error('cut off');
        };
        await nextMillisecond();
        await assert.rejects(told(store, NAMED, { origin: { ...FIRST, arrived: cut } }), { message: 'cut off' });
        assert.deepEqual(await hostOf(store, workspace.id, '192.0.2.1'), before);
        assert.equal((await told(store, NAMED, { origin: FIRST })).isRead, false);
    },

    async 'looks each time at what must be said each time'({ store }) {
        const { origin } = originOf('warned', { hasWarned: () => true });
        for (const hosts of [NAMED, NAMED, NAMED]) {
            assert.ok((await told(store, hosts, { origin })).isRead);
        }
    },
};

const dryLaws: Laws<InventoryFixture> = {
    async 'says in a dry run what an import would do that was made before, and remembers no dry run'({ store }) {
        const { origin, asked } = originOf('dry');
        const dry = { origin, dryRun: true } as const;
        assert.ok((await told(store, NAMED, dry)).isRead);
        assert.ok((await told(store, NAMED, { origin })).isRead);
        const { isRead, summary } = await told(store, [], dry);
        assert.deepEqual([isRead, asked(), summary.hosts], [false, 1, importCounts({ unchanged: 302 })]);
    },
};

const seeingLaws: Laws<InventoryFixture> = {
    async 'has seen the hosts of an import that was made before, but for those that are down, unless it is a dry run'({ store }) {
        const { workspace } = (await told(store, NAMED, { origin: FIRST })).summary;
        const seen = async (address: string): Promise<unknown> =>
            ((await hostOf(store, workspace.id, address)) as { readonly last_seen?: Date | null }).last_seen;
        const [one, many] = [present(await seen('192.0.2.1'), 'a time') as Date, (await seen('10.0.1.43')) as Date];
        await nextMillisecond();
        if (store.dryRuns === true) {
            await told(store, [], { origin: FIRST, dryRun: true });
            assert.deepEqual(await seen('192.0.2.1'), one);
        }

        await told(store, [], { origin: FIRST });
        assert.ok(((await seen('192.0.2.1')) as Date) > one);
        assert.ok(((await seen('10.0.1.43')) as Date) > many);
        assert.equal(await seen(fullHost.address), null);
    },
};

const boundedLaws: Laws<InventoryFixture> = {
    async 'looks each time at what it refuses'({ store, add }) {
        const { id } = await store.ensureWorkspace('default');
        await add?.boundary?.(id, '192.0.2.0/24');
        for (const _ of [1, 2]) {
            const { isRead, summary } = await told(store, NAMED, { origin: FIRST });
            assert.deepEqual([isRead, summary.hosts.refused], [true, 301]);
        }
    },
};

/** Laws of an `InventoryWriter` that knows what it has imported before. */
export const rememberingGroups: InventoryLaws = [
    { needs: ['imports', 'remembersImports'], laws: rememberingLaws },
    { needs: ['imports', 'remembersImports', 'dryRuns'], laws: dryLaws },
    { needs: ['imports', 'remembersImports', 'sightings'], laws: seeingLaws },
    { needs: ['imports', 'remembersImports', 'keepsBoundaries'], laws: boundedLaws },
];
