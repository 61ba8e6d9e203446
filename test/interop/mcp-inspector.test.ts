/*
 * The command line of the public MCP inspector, whose program `MCP_INSPECTOR` names (`mcp-inspector-cli` of `@modelcontextprotocol/inspector`), by
 * `scanwire mcp`.
 */
import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import t from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { fixture, serve, usedDataOf } from '../support/served.ts';

const ENTRY = fileURLToPath(new URL('../../cli/scanwire.js', import.meta.url));
const { MCP_INSPECTOR: inspector = '' } = process.env;

interface Answer {
    readonly tools?: readonly { readonly name: string; readonly annotations: object }[];
    readonly structuredContent?: object;
    readonly isError?: boolean;
}

t.test('the inspector lists the tools and calls them', { skip: inspector === '' && 'MCP_INSPECTOR names no program' }, async (t) => {
    const data = await usedDataOf(t);
    const { server } = await serve(t, data);
    await scanwire(['import', fixture('scans/services.xml'), '--data', data]);
    const ask = async (...args: string[]): Promise<Answer> => {
        const { stdout } = await promisify(execFile)(inspector, ['--cli', process.execPath, ENTRY, 'mcp', '--data', data, ...args]);
        return JSON.parse(stdout);
    };
    const { tools = [] } = await ask('--method', 'tools/list');
    t.same(
        tools.map(({ name }) => name),
        ['workspaces', 'hosts', 'services', 'vulns', 'notes', 'records', 'deliveries'],
    );
    t.match(tools[1], { annotations: { readOnlyHint: true } });
    const call = (...args: string[]) => ask('--method', 'tools/call', '--tool-name', 'hosts', ...args);
    t.match(await call('--tool-arg', 'address=127.0.0.2/31'), {
        structuredContent: { rows: [{ address: '127.0.0.2' }, { address: '127.0.0.3' }], total: 2, cursor: null },
    });
    t.match(await call('--tool-arg', 'workspace=attic'), { isError: true, content: [{ text: 'Unknown workspace "attic"' }] });
    t.equal(await ended(server, 'SIGTERM'), 0);
});
