import { Readable } from 'node:stream';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import t from 'tap';
import { relay } from '../../cli/commands/mcp.ts';
import { dataFolder } from '../../cli/data-folder.ts';
import { usedDataOf } from '../support/served.ts';
import { json, serve } from './support/processes.ts';

const SCAN = new URL('../../../fixtures/scans/services.xml', import.meta.url).pathname;
const COMMAND = new URL('../../cli/scanwire.js', import.meta.url).pathname;

t.test('lets an assistant read through the running server, as its operator', async (t) => {
    const data = await usedDataOf(t);
    const running = await serve(t, data);
    const imported = await json<{ hosts: { new: number } }>(['import', SCAN, '--data', data]);
    const client = new Client({ name: 'test', version: '1' });
    const args = [COMMAND, 'mcp', '--data', data];
    await client.connect(new StdioClientTransport({ command: process.execPath, args, env: {} }) as never);
    t.same((await client.listTools()).tools.length, 7, 'no key is asked for');
    const { structuredContent } = await client.callTool({ name: 'hosts', arguments: {} });
    t.match(structuredContent, { total: imported.hosts.new });
    t.match((await client.callTool({ name: 'deliveries', arguments: {} })).structuredContent, { rows: [], cursor: null });
    await client.close();

    const lines: string[] = [];
    const messages = [{ method: 'tools/list', id: 1 }, { method: 'notifications/initialized' }, { method: 'ping', id: 'b' }];
    const input = Readable.from(messages.map((message) => `${JSON.stringify({ jsonrpc: '2.0', ...message })}\n\n`));
    await relay(dataFolder(data), input, (line) => lines.push(line));
    t.same(
        lines.map((line) => JSON.parse(line).id),
        [1, 'b'],
        'what is told gets no answer',
    );
    t.equal(await running.stop('SIGTERM'), 0);
    await t.rejects(
        relay(dataFolder(data), Readable.from(['{}\n']), () => {}),
        { code: 'UNAVAILABLE', field: 'data' },
    );
});
