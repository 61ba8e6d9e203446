import Hapi from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../adapters/memory/inventory/inventory.ts';
import { alwaysLicensed } from '../../lib/license/license-source.ts';
import { type McpOptions, plugin as mcp } from '../../plugins/mcp/index.ts';

/*
 * What one request to the endpoint of assistants costs must be bounded, whatever its batch says: a call that cancels itself once was never
 * answered, and 9 KB of calls once took half a gigabyte.
 */

async function served(t: Test, options: Partial<McpOptions> = {}) {
    const server = Hapi.server({ debug: false });
    await server.register({ plugin: mcp, options: { store: memoryInventory(), license: alwaysLicensed(), auth: false, ...options } });
    t.teardown(() => server.stop());
    const post = async (payload: object) => {
        const headers = { accept: 'application/json, text/event-stream' };
        const { statusCode, payload: text } = await server.inject({ method: 'POST', url: '/mcp', headers, payload });
        return { status: statusCode, text, answer: JSON.parse(text) };
    };
    return { server, post };
}

t.test('answers what is cancelled by its own batch', { timeout: 20_000 }, async (t) => {
    const { post } = await served(t);
    const cancelled = (requestId: unknown) => ({ jsonrpc: '2.0', method: 'notifications/cancelled', params: { requestId } });
    const call = { jsonrpc: '2.0', method: 'tools/call', params: { name: 'workspaces', arguments: {} } };
    t.match(await post([{ jsonrpc: '2.0', id: 1, method: 'ping' }, cancelled(1)]), { status: 200, answer: { id: 1, result: {} } });
    const { answer } = await post([cancelled('a'), { ...call, id: 'a' }, { ...call, id: 'b' }, cancelled('a'), cancelled('b')]);
    t.match(answer, [
        { id: 'a', result: { structuredContent: { rows: [] } } },
        { id: 'b', result: { structuredContent: { rows: [] } } },
    ]);
});
