import assert from 'node:assert/strict';
import type { Host, HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import type { Workspace } from '../../lib/inventory/resources.ts';
import type { Collection, InventoryStore, InventoryWriter } from '../../lib/inventory/store.ts';
import type { ContractFixture } from './contract-test.ts';

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

/** More than any sensible batch holds. */
export const MANY = 2500;

export const fullHost: HostInput = {
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

export const https: ServiceInput = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: null };
export const dns: ServiceInput = { port: 53, proto: 'tcp', state: 'open', name: 'domain', info: 'dnsmasq 🦆' };

export async function batches<Row extends { readonly id: number }>(
    collection: Collection<Row>,
    path: readonly number[],
): Promise<(readonly Row[])[]> {
    const all: (readonly Row[])[] = [];
    for await (const batch of collection.list(path)) {
        all.push(batch);
    }

    return all;
}

export async function rows<Row extends { readonly id: number }>(collection: Collection<Row>, path: readonly number[]): Promise<Row[]> {
    return (await batches(collection, path)).flat();
}

/** The workspace `default` and the host as it holds it after the import. */
export async function oneHost(store: InventoryFixture['store'], input: HostInput): Promise<{ workspace: Workspace; host: Host }> {
    const { workspace } = await store.importHosts('default', each([input]));
    const host = (await rows(store.hosts, [workspace.id])).find(({ address }) => address === input.address);
    assert.ok(host !== undefined, 'the imported host is listed');
    return { workspace, host };
}

export function manyHosts(): HostInput[] {
    return Array.from({ length: MANY }, (_, index) => ({ address: `10.0.${index >> 8}.${index & 255}` }));
}

export async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

export function present<T>(collection: T | undefined): T {
    assert.ok(collection !== undefined, 'the store has the collection');
    return collection;
}

export function names(workspaces: readonly Workspace[]): string[] {
    return workspaces.map(({ name }) => name);
}
