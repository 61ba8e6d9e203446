import assert from 'node:assert/strict';
import type { Host, HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import type { Collection, InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { Workspace } from '../../lib/inventory/workspace.ts';
import { announce, type ContractFixture, type ContractTest, type Laws } from './contract-test.ts';

export interface InventoryFixture extends ContractFixture {
    /** Nothing in it but what is there from the start. */
    readonly store: InventoryStore & InventoryWriter;
    /** How many readings hold something now (connections, cursors). Without it the law about that shows nothing. */
    openReads?(): number | Promise<number>;
    /** Adds a row of a resource that no import brings and resolves to its id. Without it the laws about those show nothing. */
    readonly add?: {
        note(hostId: number): Promise<number>;
        session(hostId: number): Promise<number>;
        vuln(serviceId: number): Promise<number>;
    };
}

/** The laws of {@link InventoryStore} and {@link InventoryWriter}: each one becomes a test. */
export function inventoryContract(test: ContractTest, create: () => InventoryFixture | Promise<InventoryFixture>): void {
    announce(test, create, laws);
}

/** More than any sensible batch holds. */
const MANY = 2500;
const BEYOND_INT32 = [2 ** 31, 2 ** 40, Number.MAX_SAFE_INTEGER, -1];

const fullHost: HostInput = {
    address: 'fe80::1',
    mac: '00:50:56:aa:bb:cc',
    comm: '',
    name: 'köln 🖥 主机',
    state: 'down',
    os_name: 'Linux',
    os_flavor: 'Debian',
    os_sp: '12',
    os_lang: 'de',
    arch: 'Unknown',
    purpose: 'server',
    info: 'line\nbreak "quoted" \\',
    comments: '💾',
    scope: 'eth0',
    virtual_host: 'VMWare',
    nexpose_data_asset_id: 2_147_483_647,
    detected_arch: 'riscv64',
};

const bareHostFields: Partial<Host> = {
    address: '192.0.2.7',
    mac: '',
    comm: null,
    name: '192.0.2.7',
    state: 'alive',
    os_name: '',
    os_flavor: '',
    os_sp: '',
    os_lang: null,
    arch: null,
    purpose: '',
    info: null,
    comments: null,
    scope: null,
    virtual_host: null,
    note_count: 0,
    vuln_count: 0,
    service_count: 0,
    host_detail_count: 0,
    exploit_attempt_count: 0,
    cred_count: 0,
    nexpose_data_asset_id: null,
    history_count: 0,
    detected_arch: null,
};

const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null };
const dns: ServiceInput = { port: 53, proto: 'tcp', state: 'open', name: 'domain', info: 'dnsmasq 🦆' };

const laws: Laws<InventoryFixture> = {
    async 'has the workspace default from the start'({ store }) {
        const [workspace] = await rows(store.workspaces, []);

        assert.equal(workspace?.name, 'default');
        assert.deepEqual(await store.workspaces.get([], workspace.id), workspace);
    },

    async 'makes a workspace once'({ store }) {
        const lab = await store.ensureWorkspace('lab 🧪');
        const { created_at, updated_at, id: _id, ...fields } = lab;

        assert.deepEqual(await store.ensureWorkspace('lab 🧪'), lab);
        assert.deepEqual(fields, { name: 'lab 🧪', boundary: null, description: null, owner_id: null, limit_to_network: false });
        assert.ok(created_at instanceof Date && updated_at instanceof Date);
        assert.deepEqual(names(await rows(store.workspaces, [])), ['default', 'lab 🧪']);
    },

    async 'gives a bare host the defaults'({ store }) {
        const { host, workspace } = await oneHost(store, { address: '192.0.2.7' });
        const { id, workspace_id, created_at, updated_at, ...fields } = host;

        assert.ok(Number.isInteger(id) && created_at instanceof Date && updated_at instanceof Date);
        assert.equal(workspace_id, workspace.id);
        assert.deepEqual(fields, bareHostFields);
    },

    async 'keeps every field of a host, in any script'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);

        assert.deepEqual(host, { ...host, ...fullHost });
        assert.deepEqual(await store.hosts.get([workspace.id], host.id), host);
    },

    async 'lists rows in ascending id, each once'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const ids = (await rows(store.hosts, [workspace.id])).map(({ id }) => id);

        assert.equal(new Set(ids).size, MANY);
        assert.deepEqual(
            ids,
            ids.toSorted((a, b) => a - b),
        );
    },

    async 'gives a long list in batches'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const sizes = (await batches(store.hosts, [workspace.id])).map(({ length }) => length);

        assert.ok(sizes.length > 1, `${MANY} hosts came in ${sizes.length} batch`);
        assert.equal(
            sizes.reduce((sum, size) => sum + size, 0),
            MANY,
        );
    },

    async 'ends the reading when its signal aborts'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const controller = new AbortController();
        let seen = 0;
        await untilAborted(async () => {
            for await (const _batch of store.hosts.list([workspace.id], { signal: controller.signal })) {
                seen += 1;
                controller.abort();
            }
        });

        assert.equal(seen, 1);
    },

    async 'reads nothing when the signal was aborted before'({ store }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        let seen = 0;
        await untilAborted(async () => {
            for await (const batch of store.hosts.list([workspace.id], { signal: AbortSignal.abort() })) {
                seen += batch.length;
            }
        });

        assert.equal(seen, 0);
    },

    async 'frees what a reading held when it ends early'({ store, openReads }) {
        const { workspace } = await store.importHosts('default', each(manyHosts()));
        const controller = new AbortController();
        for await (const _batch of store.hosts.list([workspace.id])) {
            break;
        }
        await untilAborted(async () => {
            for await (const _batch of store.hosts.list([workspace.id], { signal: controller.signal })) {
                controller.abort();
            }
        });

        assert.equal((await openReads?.()) ?? 0, 0);
        assert.equal((await rows(store.hosts, [workspace.id])).length, MANY);
    },

    async 'shows a host only below its own workspace'({ store }) {
        const { host } = await oneHost(store, fullHost);
        const other = await store.ensureWorkspace('other');

        assert.equal(await store.hosts.get([other.id], host.id), null);
        assert.deepEqual(await rows(store.hosts, [other.id]), []);
        assert.equal(await store.hosts.get([other.id + 1000], host.id), null);
        assert.deepEqual(await rows(store.hosts, [other.id + 1000]), []);
    },

    async 'shows a service only below its own host and workspace'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const { host: otherHost } = await oneHost(store, { address: '192.0.2.7' });
        const other = await store.ensureWorkspace('other');
        const services = present(store.services);
        const [service] = await rows(services, [workspace.id, host.id]);
        assert.ok(service !== undefined);

        assert.deepEqual(await services.get([workspace.id, host.id], service.id), service);
        for (const wrong of [
            [workspace.id, otherHost.id],
            [other.id, host.id],
        ]) {
            assert.equal(await services.get(wrong, service.id), null);
            assert.deepEqual(await rows(services, wrong), []);
        }
    },

    async 'takes ids beyond 32 bits for unknown, not for an error'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        for (const id of BEYOND_INT32) {
            assert.equal(await store.workspaces.get([], id), null);
            assert.equal(await store.hosts.get([workspace.id], id), null);
            assert.equal(await store.hosts.get([id], host.id), null);
            assert.deepEqual(await rows(store.hosts, [id]), []);
        }
    },

    async 'imports nothing when the source fails half-way'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const input = [{ ...fullHost, name: 'changed', services: [dns] }, ...manyHosts()];
        await assert.rejects(store.importHosts('default', failing(input)), { message: 'the source broke' });
        await assert.rejects(store.importHosts('new', failing(input)), { message: 'the source broke' });

        assert.deepEqual(await rows(store.hosts, [workspace.id]), [host]);
        assert.equal((await rows(present(store.services), [workspace.id, host.id])).length, 1);
        assert.deepEqual(names(await rows(store.workspaces, [])), ['default']);
    },

    async 'updates the host that has the address, with the fields that are given'({ store }) {
        const { host, workspace } = await oneHost(store, fullHost);
        await store.importHosts('default', each([{ address: fullHost.address, os_name: '', comments: null, state: 'alive' }]));
        const [updated, ...others] = await rows(store.hosts, [workspace.id]);
        assert.ok(updated !== undefined);

        assert.deepEqual(others, []);
        assert.ok(updated.updated_at >= host.updated_at);
        assert.deepEqual(updated, { ...host, os_name: '', comments: null, state: 'alive', updated_at: updated.updated_at });
    },

    async 'takes the same address twice in one import for one host'({ store }) {
        const { workspace, hosts } = await store.importHosts(
            'default',
            each([
                { address: '192.0.2.7', name: 'first', os_name: 'Linux', services: [https] },
                { address: '192.0.2.7', name: 'second', services: [dns, { ...https, state: 'closed' }] },
            ]),
        );
        const [host, ...others] = await rows(store.hosts, [workspace.id]);

        assert.deepEqual(others, []);
        assert.deepEqual([host?.name, host?.os_name, host?.service_count, hosts.created], ['second', 'Linux', 2, 1]);
    },

    async 'takes the same address in two workspaces for two hosts'({ store }) {
        const one = await store.importHosts('one', each([fullHost]));
        const two = await store.importHosts('two', each([fullHost]));

        assert.equal((await rows(store.hosts, [one.workspace.id])).length, 1);
        assert.equal((await rows(store.hosts, [two.workspace.id])).length, 1);
    },

    async 'keeps two imports at the same time apart'({ store }) {
        const input = manyHosts().slice(0, 50);
        const [summary] = await Promise.all([store.importHosts('default', each(input)), store.importHosts('default', each(input))]);

        assert.equal((await rows(store.hosts, [summary.workspace.id])).length, input.length);
    },

    async 'finds a service by its port and protocol'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        await store.importHosts(
            'default',
            each([
                {
                    ...fullHost,
                    services: [
                        { ...dns, proto: 'udp' },
                        { ...https, state: 'closed', info: 'x' },
                    ],
                },
            ]),
        );
        const found = await rows(present(store.services), [workspace.id, host.id]);

        assert.deepEqual(
            found.map(({ port, proto, state, name, info }) => ({ port, proto, state, name, info })),
            [dns, { ...https, state: 'closed', info: 'x' }, { ...dns, proto: 'udp' }],
        );
        assert.ok(found.every(({ host_id, created_at, updated_at }) => host_id === host.id && updated_at >= created_at));
    },

    async 'counts the services of a host'({ store }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [dns, https] });
        await store.importHosts('default', each([{ ...fullHost, services: [https, { ...https, port: 8443 }] }, { address: '192.0.2.7' }]));
        const hosts = await rows(store.hosts, [workspace.id]);

        assert.equal(host.service_count, 2);
        assert.deepEqual(
            hosts.map(({ service_count }) => service_count),
            [3, 0],
        );
    },

    async 'says how much an import made and updated'({ store }) {
        const first = await store.importHosts('lab', each([{ ...fullHost, services: [dns] }]));
        const second = await store.importHosts('lab', each([{ ...fullHost, services: [dns, https] }, { address: '192.0.2.7' }]));

        assert.deepEqual(
            [first.hosts, first.services],
            [
                { created: 1, updated: 0 },
                { created: 1, updated: 0 },
            ],
        );
        assert.deepEqual(
            [second.hosts, second.services],
            [
                { created: 1, updated: 1 },
                { created: 1, updated: 1 },
            ],
        );
        assert.deepEqual(second.workspace, await store.ensureWorkspace('lab'));
    },

    async 'makes the workspace of an empty import'({ store }) {
        const { workspace, hosts, services } = await store.importHosts('empty', each([]));

        assert.deepEqual(await store.workspaces.get([], workspace.id), workspace);
        assert.deepEqual(
            [hosts, services],
            [
                { created: 0, updated: 0 },
                { created: 0, updated: 0 },
            ],
        );
    },

    async 'shows notes, sessions and vulnerabilities only below their own parents'({ store, add }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const { host: otherHost } = await oneHost(store, { address: '192.0.2.7' });
        const [service] = await rows(present(store.services), [workspace.id, host.id]);
        if (add === undefined || service === undefined) {
            return;
        }

        const added: [Collection<{ id: number }> | undefined, number, number[]][] = [
            [store.notes, await add.note(host.id), []],
            [store.sessions, await add.session(host.id), []],
            [store.vulns, await add.vuln(service.id), [service.id]],
        ];
        for (const [collection, id, below] of added) {
            const rightPath = [workspace.id, host.id, ...below];
            const wrongPath = [workspace.id, otherHost.id, ...below];
            assert.equal((await present(collection).get(rightPath, id))?.id, id);
            assert.equal((await rows(present(collection), rightPath)).length, 1);
            assert.equal(await present(collection).get(wrongPath, id), null);
            assert.deepEqual(await rows(present(collection), wrongPath), []);
        }
    },

    async 'counts the notes and vulnerabilities of a host'({ store, add }) {
        const { host, workspace } = await oneHost(store, { ...fullHost, services: [https] });
        const [service] = await rows(present(store.services), [workspace.id, host.id]);
        if (add === undefined || service === undefined) {
            return;
        }

        await add.note(host.id);
        await add.note(host.id);
        await add.vuln(service.id);
        const counted = await store.hosts.get([workspace.id], host.id);

        assert.deepEqual([counted?.note_count, counted?.vuln_count], [2, 1]);
    },
};

async function batches<Row extends { readonly id: number }>(
    collection: Collection<Row>,
    path: readonly number[],
): Promise<(readonly Row[])[]> {
    const all: (readonly Row[])[] = [];
    for await (const batch of collection.list(path)) {
        all.push(batch);
    }

    return all;
}

async function rows<Row extends { readonly id: number }>(collection: Collection<Row>, path: readonly number[]): Promise<Row[]> {
    return (await batches(collection, path)).flat();
}

/** The workspace `default` and the host as it holds it after the import. */
async function oneHost(store: InventoryFixture['store'], input: HostInput): Promise<{ workspace: Workspace; host: Host }> {
    const { workspace } = await store.importHosts('default', each([input]));
    const host = (await rows(store.hosts, [workspace.id])).find(({ address }) => address === input.address);
    assert.ok(host !== undefined, 'the imported host is listed');
    return { workspace, host };
}

function manyHosts(): HostInput[] {
    return Array.from({ length: MANY }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}` }));
}

async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

async function* failing<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
    throw new Error('the source broke');
}

/** An aborted reading may end or reject; it must do either. */
async function untilAborted(reading: () => Promise<void>): Promise<void> {
    try {
        await reading();
    } catch (error) {
        assert.equal((error as Error).name, 'AbortError');
    }
}

function present<T>(collection: T | undefined): T {
    assert.ok(collection !== undefined, 'the store has the collection');
    return collection;
}

function names(workspaces: readonly Workspace[]): string[] {
    return workspaces.map(({ name }) => name);
}
