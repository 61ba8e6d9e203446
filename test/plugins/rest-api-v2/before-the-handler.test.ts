import Hapi from '@hapi/hapi';
import t from 'tap';
import { memoryApiKeys } from '../../../adapters/memory/api-keys.ts';
import { memoryInventory } from '../../../adapters/memory/inventory/inventory.ts';
import { alwaysLicensed, type LicenseSource } from '../../../lib/license/license-source.ts';
import { plugin as restApiV2 } from '../../../plugins/rest-api-v2/index.ts';
import { simulate, plugin as tokenAuth } from '../../../plugins/token-auth/index.ts';
import { answers, served } from './served.ts';

async function* hosts() {
    yield { address: '192.0.2.1' };
    yield { address: '192.0.2.2' };
}

async function filled() {
    const store = memoryInventory();
    await store.importHosts('default', hosts());
    return store;
}

t.test('takes a path for the same when an extension of the application has made it, registered before or after', async (t) => {
    for (const isBefore of [true, false]) {
        const server = Hapi.server();
        const rewrite = () =>
            server.ext('onRequest', (request, h) => {
                const [, path] = /^\/scan(\/.*)$/.exec(request.path) ?? [];
                if (path !== undefined) {
                    request.setUrl(`/rest_api/v2${path}`);
                }
                return h.continue;
            });
        if (isBefore) {
            rewrite();
        }
        await server.register({ plugin: tokenAuth, options: { store: memoryApiKeys(), revealable: false } });
        await server.register({ plugin: restApiV2, options: { store: await filled(), license: alwaysLicensed() } });
        if (!isBefore) {
            rewrite();
        }

        const { headers } = await answers(server);
        const { payload } = await server.inject({ url: '/rest_api/v2/workspaces/1/hosts/2', headers });
        t.match(JSON.parse(payload), { id: 2, address: '192.0.2.2' });
        const led = await server.inject({ url: '/scan/workspaces/1/hosts/2/?x=1', headers });
        t.equal(led.payload, payload);
        t.equal((await server.inject({ url: '/scan/workspaces/1/nothing/', headers })).statusCode, 404);
        t.equal((await server.inject({ url: '/rest_api/v2/workspaces/%zz/', headers })).statusCode, 404);
        t.equal((await server.inject('/scan/workspaces/1/hosts/2/')).statusCode, 403);
    }
});

t.test('asks for scope and licence whoever brought the credentials', async (t) => {
    let isValid = true;
    const { server, get } = await served({ store: await filled(), license: { valid: () => isValid } as LicenseSource });
    const asked = async (auth: NonNullable<Hapi.ServerInjectOptions['auth']>) =>
        (await server.inject({ url: '/rest_api/v2/workspaces/1', auth })).statusCode;
    server.auth.scheme('anybody', () => ({ authenticate: (_, h) => h.authenticated({ credentials: {} }) }));
    server.auth.strategy('of-the-application', 'anybody');
    const [reads, publishes] = [simulate(), simulate({ scope: ['events:publish'] })];
    const foreign = { ...publishes, strategy: 'of-the-application' };

    t.strictSame([await asked(reads), await asked(publishes), await asked(foreign)], [200, 403, 200]);
    isValid = false;
    t.strictSame([await asked(reads), await asked(publishes), await asked(foreign)], [403, 403, 403]);
    t.equal((await get('/workspaces/1')).status, 403);
});
