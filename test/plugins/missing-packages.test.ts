import { register } from 'node:module';
import Hapi from '@hapi/hapi';
import t from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { alwaysLicensed } from '../../lib/license/verify-license.ts';
import { plugin as mcp } from '../../plugins/mcp/index.ts';
import { plugin as restApiV2 } from '../../plugins/rest-api-v2/index.ts';

/*
 * A host that has not installed what is optional. In this process Node looks for these packages under names that nobody has taken, and so
 * says itself that they are not there.
 */

const LEFT_OUT = /^(?:@modelcontextprotocol\/sdk|swagger-ui-dist)\//;

const hooks = `export const resolve = (name, context, next) => next(${LEFT_OUT}.test(name) ? 'left-out-' + name.replace('@', '') : name, context);`;
register(`data:text/javascript,${encodeURIComponent(hooks)}`);

const options = { store: memoryInventory(), license: alwaysLicensed(), auth: false } as const;

t.test('mcp names the package that it needs, and the line that installs it', async (t) => {
    await t.rejects(Hapi.server().register({ plugin: mcp, options }), {
        code: 'MISCONFIGURED',
        message: 'The plugin mcp needs the package @modelcontextprotocol/sdk: npm install @modelcontextprotocol/sdk',
    });
});

t.test('rest-api-v2 names what the page of its document needs, and goes without', async (t) => {
    const withPage = { ...options, openapi: { page: '/api-docs' } };
    await t.rejects(Hapi.server().register({ plugin: restApiV2, options: withPage }), {
        code: 'MISCONFIGURED',
        message: 'rest-api-v2 options: openapi.page needs the package swagger-ui-dist: npm install swagger-ui-dist',
    });
    const server = Hapi.server();
    await server.register({ plugin: restApiV2, options });
    t.equal((await server.inject('/rest_api/v2/openapi.json')).statusCode, 200);
});
