import { connect, type Socket } from 'node:net';
import { server as hapiServer } from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryInventory } from '../../adapters/memory/index.ts';
import { ask } from '../../cli/admin-client.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import { plugin as adminConsole } from '../../plugins/admin-console/index.ts';
import type { Input, OperationName, Output } from '../../plugins/admin-console/operations.ts';

/*
 * The name of a workspace is a segment of paths, and one of `.` or `..` is taken out of them before anybody sees it: such a workspace was there, and could be
 * neither shown, renamed nor removed while a server ran.
 */

async function* hosts(): AsyncGenerator<HostInput> {
    yield { address: '192.0.2.1' };
}

async function administered(t: Test) {
    const inventory = memoryInventory();
    const server = hapiServer({ host: '127.0.0.1', port: 0 });
    await server.register({ plugin: adminConsole, options: { system: { inventory }, auth: false, authorize: () => true, prefix: '' } });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    const connected = (): Socket => connect(Number(server.info.port), '127.0.0.1');
    return {
        server,
        inventory,
        asked: <Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>> => ask(connected(), name, input),
        imported: (workspace: string) =>
            ask(connected(), 'importScan', { workspace, source: [Buffer.from('{"address":"192.0.2.2"}\n')] as never }),
    };
}

t.test('makes no workspace with such a name, nor gives it to one', async (t) => {
    const { asked, imported } = await administered(t);
    for (const name of ['.', '..', ' .. ']) {
        await t.rejects(
            imported(name),
            { code: 'INVALID_INPUT', field: 'workspace', message: /^Workspace must be a name other than \. and \.\./ },
            name,
        );
        await imported('lab');
        const refusal = { code: 'INVALID_INPUT', field: 'to', message: /^to must be a name other than \. and \.\./ };
        await t.rejects(asked('renameWorkspace', { name: 'lab', to: name }), refusal, name);
    }
    t.same(
        (await asked('listWorkspaces', {})).map(({ name }) => name),
        ['default', 'lab'],
    );
    for (const name of ['...', '.a', 'a..', '. .']) {
        t.equal((await imported(name)).workspace.name, name, 'others with dots may be called so');
    }
});

for (const name of ['.', '..']) {
    t.test(`a workspace ${name} that is there already can be shown, filled, changed, renamed and removed`, async (t) => {
        const { server, inventory, asked, imported } = await administered(t);
        await inventory.importHosts(name, hosts());
        t.match(await asked('showWorkspace', { name }), { name, hosts: 1 });
        t.equal((await imported(name)).hosts.new, 1);
        t.match(await asked('updateWorkspace', { name, boundary: '192.0.2.0/24' }), { name, boundary: '192.0.2.0/24' });
        t.equal((await asked('listHosts', { workspace: name })).hosts.length, 2);
        t.match(await asked('renameWorkspace', { name, to: 'lab' }), { name: 'lab' });
        await inventory.importHosts(name, hosts());
        t.same(await asked('removeWorkspace', { name }), { hosts: 1 });
        await t.rejects(asked('removeWorkspace', { name }), { code: 'NOT_FOUND' });

        await inventory.importHosts(name, hosts());
        t.match(
            (await server.inject({ method: 'DELETE', url: `/workspaces/%20${name}` })).payload,
            '{"hosts":1}',
            'as other clients can write it',
        );
    });
}
