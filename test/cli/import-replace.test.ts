import { readFileSync } from 'node:fs';
import t from 'tap';
import { underWay } from '../../adapters/contract/assertions.ts';
import { ended, scanwire } from '../support/scanwire.ts';
import { fixture, get, json, said, serve, usedDataOf } from '../support/served.ts';

/** Fewer than one batch of a listing holds, so that each answer is of one moment. */
const HOSTS = 200;

/** A host of an export. */
interface Exported {
    readonly address: string;
    readonly state: string;
    readonly services?: readonly { readonly port: number; readonly state: string }[];
}

/** JSON lines of so many hosts with services, beginning at an address. */
function scan(prefix: string, ports: readonly number[]): string {
    const services = ports.map((port) => ({ port }));
    return Array.from({ length: HOSTS }, (_, index) => `${JSON.stringify({ address: `${prefix}.${index}`, services })}\n`).join('');
}

t.test('replaces a workspace at once, and by no file that is cut off', async (t) => {
    const data = await usedDataOf(t);
    const { server, served } = await serve(t, data);
    const { key } = await json<{ key: string }>(data, 'keys', 'create', 'ci');
    const seen = async (): Promise<string> => (await get(served, '/rest_api/v2/workspaces/1/hosts', key)).body;
    const shown = (body: string): string => {
        const hosts = JSON.parse(body) as { address: string; service_count: number }[];
        const kinds = new Set(hosts.map(({ address, service_count }) => `${address.split('.')[0]} with ${service_count}`));
        return `${hosts.length}: ${[...kinds].join(', ')}`;
    };
    const replace = (input: string) => scanwire(['import', '-', '--replace', '--data', data], { input });
    await scanwire(['import', '-', '--data', data], { input: scan('10.0.0', [22, 80, 443]) });
    const before = await seen();
    t.equal(shown(before), '200: 10 with 3');

    t.match(await replace(readFileSync(fixture('scans/interrupted.xml'), 'utf8')), { code: 1, stderr: /^scanwire: Line 19, column 0: / });
    t.match(await replace(`${scan('192.0.2', [22])}{"address":`), { code: 1, stderr: /^scanwire: Line 201 / });
    t.equal(await seen(), before);

    const replacing = underWay(replace(scan('192.0.2', [22])));
    const states = new Set([shown(before)]);
    while (!replacing.ended()) {
        states.add(shown(await seen()));
    }
    const stdout = 'Imported into default: hosts 200 new, 200 gone; services 200 new, 600 gone\n';
    t.match(await replacing.result, { code: 0, stdout });
    states.add(shown(await seen()));
    t.same([...states], ['200: 10 with 3', '200: 192 with 1']);

    t.match(await replace(scan('192.0.2', [22])), { stdout: 'Imported into default: hosts 200 unchanged; services 200 unchanged\n' });
    t.equal(await ended(server, 'SIGTERM'), 0);
});

t.test('brings a workspace from the scan of one week to that of the next, with and without what is gone', async (t) => {
    const data = await usedDataOf(t);
    const importing = (file: string, workspace: string, ...options: string[]) =>
        said(['import', fixture(`scans/${file}`), '--workspace', workspace, ...options, '--data', data]);
    const held = async (workspace: string): Promise<readonly string[]> => {
        const { stdout } = await said(['export', '--workspace', workspace, '--data', data]);
        const hosts = stdout
            .trim()
            .split('\n')
            .map((line) => JSON.parse(line) as Exported);
        return hosts.map(({ address, state, services = [] }) =>
            [address, state, ...services.map((one) => `${one.port} ${one.state}`)].join(', '),
        );
    };
    for (const workspace of ['kept', 'whole']) {
        t.match(await importing('week-1.xml', workspace), { code: 0, stdout: `Imported into ${workspace}: hosts 3 new; services 5 new\n` });
    }
    t.match(await importing('week-2.xml', 'kept'), {
        code: 0,
        stdout: 'Imported into kept: hosts 1 new, 1 unchanged, 1 gone; services 1 new, 2 unchanged, 1 gone\n',
    });
    t.match(await importing('week-2.xml', 'whole', '--replace'), {
        code: 0,
        stdout: 'Imported into whole: hosts 1 new, 1 unchanged, 2 gone; services 1 new, 2 unchanged, 3 gone\n',
    });
    const [first, last] = ['198.51.100.1, alive, 22 open, 80 closed, 443 open', '198.51.100.4, alive, 22 open'];
    t.strictSame(await held('kept'), [first, '198.51.100.2, down, 22 open', '198.51.100.3, alive, 80 open', last]);
    t.strictSame(await held('whole'), [first, '198.51.100.2, down', last]);
});
