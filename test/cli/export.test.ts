import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { ended, scanwire } from '../support/scanwire.ts';
import { dataOf, fixture, said, serve, usedDataOf } from '../support/served.ts';

/** What a workspace holds that an import brings: its export without what the server makes itself. */
async function contents(t: Test, data: string, workspace: string): Promise<string> {
    const { code, stdout, stderr } = await said(['export', '--workspace', workspace, '--data', data]);
    t.equal(code, 0, stderr);
    return stdout.replace(/"(?:id|workspace_id|host_id|service_id|created_at|updated_at)":[^,}]+,?/g, '');
}

t.test('exports what was imported, and an import of that into another workspace makes the same', async (t) => {
    const data = await usedDataOf(t);
    const { server } = await serve(t, data);
    for (const file of ['scripts.xml', 'metasploit.xml', 'office.nessus']) {
        t.equal((await said(['import', fixture(`scans/${file}`), '--data', data])).code, 0);
    }

    const folder = t.testdir({});
    const file = `${folder}/office.jsonl`;
    const exported = await said(['export', '--output', file, '--data', data]);
    t.match(exported, { code: 0, stderr: '', stdout: /^Exported default to .*office\.jsonl: [\d,]+ bytes\n$/ });
    t.match(await said(['import', file, '--workspace', 'copy', '--data', data]), {
        stdout: 'Imported into copy: hosts 6 new; services 10 new; notes 15 new; vulns 8 new\n',
    });
    t.equal(await contents(t, data, 'copy'), await contents(t, data, 'default'));
    t.match(await said(['import', file, '--data', data]), {
        stdout: 'Imported into default: hosts 6 unchanged; services 10 unchanged; notes 15 unchanged; vulns 8 unchanged\n',
    });

    const xml = await said(['export', '--format', 'nmap-xml', '--output', '-', '--json', '--data', data]);
    t.match(xml, { code: 0, stderr: '' });
    t.match(await said(['import', '-', '--workspace', 'xml', '--data', data], { input: xml.stdout }), {
        stdout: /^Imported into xml: hosts 6 new; services 10 new\n$/,
    });
    const csv = await said(['export', '--format', 'csv', '--data', data]);
    t.match(csv.stdout, /^id,workspace_id,created_at,/);
    t.equal(csv.stdout.match(/\r\n/g)?.length, 13, 'a head, a line for each service, and one for each host without');
    t.equal(await ended(server, 'SIGTERM'), 0);

    const alone = await scanwire(['export', '--output', `${folder}/again.jsonl`, '--json', '--data', data]);
    t.same(JSON.parse(alone.stdout), { file: `${folder}/again.jsonl`, bytes: readFileSync(file).length }, 'without a server');
    t.equal(readFileSync(`${folder}/again.jsonl`, 'utf8'), readFileSync(file, 'utf8'));
});

t.test('names what is wrong, and leaves no file behind', async (t) => {
    const folder = t.testdir({});
    const file = `${folder}/hosts.csv`;
    t.match(await said(['export', '--data', dataOf(t), '--output', file]), { code: 1, stderr: /There is no data folder/ });
    const data = await usedDataOf(t);
    const exporting = (...options: string[]) => said(['export', '--data', data, '--output', file, ...options]);
    const { server } = await serve(t, data);
    t.match(await exporting('--workspace', 'attic'), { code: 1, stdout: '', stderr: 'scanwire: Unknown workspace "attic"\n' });
    t.match(await exporting('--format', 'xlsx'), { code: 1, stderr: 'scanwire: format must be one of [jsonl, csv, nmap-xml]\n' });
    t.match(await exporting('--output', `${folder}/none/hosts.csv`), { code: 1, stderr: /there is no such folder/ });
    t.same(readdirSync(folder), []);

    writeFileSync(file, 'dear diary');
    t.match(await exporting('--format', 'csv'), {
        code: 1,
        stderr: /hosts\.csv exists already: name another file, or replace it with --force/,
    });
    t.equal(readFileSync(file, 'utf8'), 'dear diary');
    t.equal((await exporting('--format', 'csv', '--force')).code, 0);
    t.match(readFileSync(file, 'utf8'), /^id,/);
    t.same(readdirSync(folder), ['hosts.csv']);
    t.equal(await ended(server, 'SIGTERM'), 0);
    t.notOk(existsSync(`${file}.partial`));
});
