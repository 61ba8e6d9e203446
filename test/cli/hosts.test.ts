import t from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { json, said, serve, usedDataOf } from '../support/served.ts';

const HOST = {
    address: '192.0.2.1',
    name: 'printer\u001b[31m',
    services: [{ port: 443, name: 'https', info: 'nginx' }],
    vulns: [
        { name: 'old kernel', info: 'of the host' },
        { port: 443, name: 'weak cipher' },
    ],
    notes: [
        { ntype: 'uptime', data: { days: 7 } },
        { port: 443, data: {} },
    ],
};

t.test('shows hosts with all that is known, moves them, and limits workspaces', async (t) => {
    const data = await usedDataOf(t);
    const { server } = await serve(t, data);
    const run = (...args: string[]) => said([...args, '--data', data]);
    const input = `${JSON.stringify(HOST)}\n{"address":"192.0.2.2"}\n`;
    await said(['import', '-', '--data', data], { input });
    await said(['import', '-', '--workspace', 'lab', '--data', data], { input: '{"address":"192.0.2.2"}' });

    t.match(await run('hosts', 'list', '--limit', '1'), {
        stdout: /^ID {2}ADDRESS +NAME +STATE .*\n1 {3}192\.0\.2\.1 +printer\ufffd\[31m +alive .*\n\nMore with --after 1\n$/,
    });
    const shown = (await run('hosts', 'show', '192.0.2.1')).stdout.split('\n\n');
    t.match(shown, [
        /^ID +1\nAddress +192\.0\.2\.1\nName +printer/,
        'PORT     STATE  SERVICE  INFO\n443/tcp  open   https    nginx',
        'PORT     VULNERABILITY  INFO\n         old kernel     of the host\n443/tcp  weak cipher',
        'PORT     NOTE    DATA\n         uptime  {"days":7}\n443/tcp          {}\n',
    ]);
    t.match((await run('hosts', 'show', '192.0.2.2')).stdout, /\n\nNo services\.\n$/);

    t.match(await run('hosts', 'move', '1', '2', '--to', 'lab'), {
        code: 1,
        stderr: 'scanwire: The workspace "lab" holds 192.0.2.2 already\n',
    });
    t.match(await run('hosts', 'move', '1', '99', '--to', 'lab'), { code: 1, stderr: /There is no host with the id 99/ });
    t.match(await run('hosts', 'move', '1', '--to', 'attic'), { code: 1, stderr: /Unknown workspace "attic"/ });
    t.match(await run('hosts', 'move', 'printer', '--to', 'lab'), {
        code: 1,
        stderr: 'scanwire: ids[0] must be a number\n',
    });
    t.match(await run('hosts', 'move', '1', '--to', 'lab'), { code: 0, stdout: 'Moved 1 host to lab\n' });
    t.match(await run('hosts', 'show', '192.0.2.1'), { code: 1, stderr: /There is no host 192\.0\.2\.1 in the workspace "default"/ });
    t.match(await json(data, 'hosts', 'show', '192.0.2.1', '--workspace', 'lab'), {
        id: 1,
        vulns: [{ service_id: null }, {}],
        notes: [{}, {}],
    });

    const update = (...options: string[]) => run('workspaces', 'update', 'lab', ...options);
    t.match(await update('--boundary', '198.51.100.0/24, 2001:db8::/32', '--limit-to-network'), {
        stdout: 'lab has the boundary 198.51.100.0/24, 2001:db8::/32; imports leave out what is outside\n',
    });
    t.match(await run('workspaces', 'list'), { stdout: /\n2 +lab +198\.51\.100\.0\/24, 2001:db8::\/32 +yes\n/ });
    t.match(await run('hosts', 'move', '2', '--to', 'lab'), {
        code: 1,
        stderr: 'scanwire: The workspace "lab" holds 192.0.2.2 already\n',
    });
    t.match(await said(['import', '-', '--workspace', 'lab', '--data', data], { input }), { stdout: /hosts 2 refused/ });
    t.match(await update('--boundary', 'the cellar'), {
        code: 1,
        stderr: /^scanwire: Boundary must be a list of addresses, blocks and ranges/,
    });
    t.match(await update('--no-boundary', '--no-limit-to-network'), { stdout: 'lab has no boundary; imports take all hosts\n' });
    t.match(await run('workspaces', 'show', 'lab'), {
        stdout: /^ID +2\nName +lab\nHosts +2\nServices +1\nNotes +2\nVulns +\d+\nChanged /,
    });
    t.match(await run('workspaces', 'show', 'attic'), { code: 1, stderr: /Unknown workspace "attic"/ });
    t.match(await run('workspaces', 'update', 'attic', '--no-boundary'), { code: 1, stderr: 'scanwire: Unknown workspace "attic"\n' });

    await scanwire(['import', '-', '--workspace', 'lab', '--data', data], { input: '{"address":"198.51.100.7"}' });
    const remove = (...options: string[]) => run('hosts', 'remove', '192.0.2.0/24', '--workspace', 'lab', ...options);
    t.match(await remove('--dry-run'), { code: 0, stdout: 'Would remove 2 hosts of lab\n' });
    t.match(await remove(), { code: 0, stdout: 'Removed 2 hosts of lab\n' });
    t.same(
        (await json<{ hosts: { address: string }[] }>(data, 'hosts', 'list', '--workspace', 'lab')).hosts.map(({ address }) => address),
        ['198.51.100.7'],
    );
    t.match(await run('hosts', 'remove', 'the cellar'), { code: 1, stderr: /^scanwire: address must be/ });
    t.match(await run('workspaces', 'rename', 'lab', 'default'), {
        code: 1,
        stderr: 'scanwire: There is a workspace "default" already (to)\n',
    });
    t.match(await run('workspaces', 'rename', 'default', 'x'), { code: 1, stderr: /its name stays\n$/ });
    t.match(await run('workspaces', 'rename', 'lab', 'cellar'), { code: 0, stdout: 'lab is cellar from now on\n' });
    t.match(await run('workspaces', 'rename', 'lab', 'cellar'), { code: 1, stderr: 'scanwire: Unknown workspace "lab"\n' });
    t.match(await run('workspaces', 'rename', 'cellar', 'lab'), { code: 0 });
    t.match(await run('workspaces', 'remove', 'lab'), { code: 0, stdout: 'Removed lab with 1 host\n' });
    t.match(await run('workspaces', 'remove', 'lab'), { code: 1, stderr: 'scanwire: Unknown workspace "lab"\n' });
    t.notMatch((await run('workspaces', 'list')).stdout, /\blab\b/);
    t.equal(await ended(server, 'SIGTERM'), 0);
});
