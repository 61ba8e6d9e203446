import Hapi, { type Server } from '@hapi/hapi';
import { type MemoryInventory, memoryApiKeys, memoryInventory } from '../../../adapters/memory/index.ts';
import type { HostInput } from '../../../lib/inventory/host.ts';
import type { ApiKeys } from '../../../lib/keys/api-keys.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { type MetasploitDataOptions, plugin as metasploitData } from '../../../plugins/metasploit-data/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';

const NOW = new Date('2026-11-21T09:30:00.123Z');
export const AT: string = '2026-11-21T09:30:00.123Z';
export const SECONDS = 1_795_253_400;

export async function* each<T>(items: readonly T[]): AsyncIterable<T> {
    yield* items;
}

export const https = { port: 443, proto: 'tcp', state: 'open', name: 'https', info: 'nginx' } as const;
const dns = { port: 53, proto: 'udp', state: 'closed', name: '', info: null } as const;
const HOSTS: readonly HostInput[] = [
    { address: '192.0.2.1', name: 'web', os_name: 'Linux', services: [https, dns] },
    { address: '192.0.2.2', state: 'down' },
    { address: '198.51.100.7', services: [https], nexpose_data_asset_id: 7 },
];

/** Two workspaces, in a store that reads two rows at once. */
export async function filled(): Promise<MemoryInventory> {
    const store = memoryInventory({ clock: () => NOW, batchSize: 2 });
    await store.importHosts('default', each(HOSTS));
    await store.importHosts('lab', each([{ address: '10.0.0.1', services: [https] }]));
    await store.addVuln(1, { name: 'Heartbleed', info: 'cve-2014-0160, CVE-2014-0160' });
    await store.addVuln(3, { name: 'Weak cipher' });
    await store.addNote(1, { ntype: 'host.os', data: { os: 'Linux', nested: [1] }, service_id: 2 });
    await store.addNote(3, { ntype: 'x' });
    await store.addSession(1, { stype: 'shell', via_exploit: 'exploit/multi/handler', desc: 'Root of web', datastore: { LPORT: 4444 } });
    return store;
}

/** What JSON is read as, for tests that know what it is. */
type Json = ReturnType<typeof JSON.parse>;

interface Sent {
    readonly method?: string;
    readonly bearer?: string;
    readonly payload?: object;
}

export interface DataService {
    readonly server: Server;
    /** Makes a key of its own. */
    readonly create: ApiKeys['create'];
    readonly key: string;
    /** @param path Below `/api/v1`. */
    ask(
        path: string,
        sent?: Sent,
    ): Promise<{ readonly status: number; readonly body: Json; readonly headers: Readonly<Record<string, unknown>> }>;
    rpc(method: string, ...params: object[]): Promise<Json>;
}

/** The plugin over such a store, unless the options say otherwise. */
export async function served(options: Partial<MetasploitDataOptions> = {}): Promise<DataService> {
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    await server.register({ plugin: metasploitData, options: { store: await filled(), license: alwaysLicensed(), ...options } });
    const { create } = server.plugins['token-auth'];
    const { key } = await create('console');
    const ask = async (path: string, { method = 'GET', bearer = key, payload }: Sent = {}) => {
        const headers = bearer === '' ? {} : { authorization: `Bearer ${bearer}` };
        const {
            statusCode,
            payload: body,
            headers: answered,
        } = await server.inject({
            method,
            url: `/api/v1${path}`,
            headers,
            ...(payload !== undefined && { payload }),
        });
        return { status: statusCode, body: body === '' ? null : JSON.parse(body), headers: answered };
    };
    const rpc = async (method: string, ...params: object[]) =>
        (await ask('/json-rpc', { method: 'POST', payload: { jsonrpc: '2.0', method, id: 1, params } })).body;
    return { server, create, key, ask, rpc };
}
