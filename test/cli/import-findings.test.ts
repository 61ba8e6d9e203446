import t from 'tap';
import { ended } from '../support/scanwire.ts';
import { fixture, get, json, said, serve, usedDataOf } from '../support/served.ts';

t.test('imports what scripts and vendors found, says what a dry run would change, and names all bad lines', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    const read = async (path: string): Promise<readonly Readonly<Record<string, unknown>>[]> =>
        JSON.parse((await get(served, `/rest_api/v2/workspaces/1${path}`, key)).body);
    const importing = (file: string, ...options: string[]) => said(['import', fixture(`scans/${file}`), ...options, '--data', data]);

    t.match(await importing('scripts.xml', '--dry-run'), {
        code: 0,
        stdout: 'Would import into default: hosts 2 new; services 6 new; notes 6 new; vulns 1 new\n',
    });
    t.same(await read('/hosts'), []);
    t.match(await importing('scripts.xml'), {
        stdout: 'Imported into default: hosts 2 new; services 6 new; notes 6 new; vulns 1 new\n',
    });
    t.match(await importing('scripts.xml'), {
        stdout: 'Imported into default: hosts 2 unchanged; services 6 unchanged; notes 6 unchanged; vulns 1 unchanged\n',
    });
    const [host] = await read('/hosts');
    t.match(host, { address: '127.0.0.2', note_count: 5, vuln_count: 1 });
    const services = await read(`/hosts/${host?.id}/services`);
    const tls = services.find(({ port }) => port === 8443);
    t.match(await read(`/hosts/${host?.id}/services/${tls?.id}/vulns`), [
        { name: 'Diffie-Hellman Key Exchange Insufficient Group Strength', info: /References: URL-https:\/\/weakdh.org$/ },
    ]);
    t.match(await read(`/hosts/${host?.id}/notes`), [{ ntype: 'nmap.nse.http-methods' }, { data: { output: 'Example' } }, {}, {}, {}]);

    t.match(await importing('metasploit.xml'), { stdout: /hosts 2 new; services 2 new; notes 7 new; vulns 4 new/ });
    t.match(await importing('metasploit.xml', '--replace', '--dry-run'), { stdout: /notes 7 unchanged, 6 gone; vulns 4 unchanged/ });
    t.match(await importing('office.nessus'), { stdout: /hosts 2 new; services 2 new; notes 2 new; vulns 3 new/ });
    t.equal((await read('/vulns')).length, 8);

    const input = '{"address":"192.0.2.1"}\n{}\n{"address":"x"}\n';
    t.match(await said(['import', '-', '--data', data], { input }), {
        code: 1,
        stderr: 'scanwire: Line 2: address is required; 1 more line is bad\n  Line 3: address must be an IPv4 or IPv6 address\n',
    });
    const { stderr } = await said(['import', '-', '--json', '--data', data], { input });
    t.match(JSON.parse(stderr), {
        error: { code: 'INVALID_INPUT', field: 'address', problems: [{ line: 2 }, { line: 3, field: 'address' }] },
    });
    t.equal((await read('/hosts')).length, 6);
    t.equal(await ended(server, 'SIGTERM'), 0);
});
