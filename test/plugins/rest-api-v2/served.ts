import Hapi, { type Server } from '@hapi/hapi';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { alwaysLicensed } from '../../../lib/license/license-source.ts';
import { type RestApiV2Options, plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';

export interface Served {
    readonly server: Server;
    /** Headers with a valid key. */
    readonly headers: Readonly<Record<string, string>>;
    /** Status, headers and body of a request with a valid key unless `headers` says otherwise. */
    get(path: string, options?: { method?: string; headers?: Record<string, string> }): Promise<Answer>;
}

export interface Answer {
    readonly status: number;
    readonly type: string;
    readonly headers: Readonly<Record<string, unknown>>;
    readonly body: string;
}

/** A hapi server with both plugins; the inventory is empty and the licence valid unless the options say otherwise. */
export async function served(options: Partial<RestApiV2Options> = {}, serverOptions: Hapi.ServerOptions = {}): Promise<Served> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, ...serverOptions });
    await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
    await server.register({ plugin: restApiV2, options: { store: memoryInventory(), license: alwaysLicensed(), ...options } });
    return await answers(server);
}

/** Makes a key and asks with it. */
export async function answers(server: Server): Promise<Served> {
    const { key } = await server.plugins['token-auth'].create('test');
    const valid = { token: key };

    return {
        server,
        headers: valid,
        async get(path, { method = 'GET', headers = valid } = {}) {
            const { statusCode, headers: answered, payload } = await server.inject({ method, url: `/rest_api/v2${path}`, headers });
            return { status: statusCode, type: String(answered['content-type']), headers: answered, body: payload };
        },
    };
}
