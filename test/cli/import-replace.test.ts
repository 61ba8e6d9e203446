import { readFileSync } from 'node:fs';
import t from 'tap';
import { underWay } from '../../adapters/contract/assertions.ts';
import { ended, scanwire } from '../support/scanwire.ts';
import { fixture, get, json, serve, usedDataOf } from '../support/served.ts';

/** Fewer than one batch of a listing holds, so that each answer is of one moment. */
const HOSTS = 200;

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
