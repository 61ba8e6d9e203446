import { randomUUID } from 'node:crypto';
import t from 'tap';
import { takeBack } from '../../../../adapters/postgres/imports/import-batches.ts';
import { readAside } from '../../../../adapters/postgres/imports/read-aside.ts';
import { postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import { merging } from '../../../../lib/inventory/mentions.ts';
import { databases, startAfresh } from '../databases.ts';
import { all, each, manyHosts } from './imported.ts';

const open = (port: number): ServiceInput => ({ port, proto: 'tcp', state: 'open' });

/** A host with a note and a vulnerability for each of its services. */
function crowded(host: HostInput, ports: readonly number[], text: string): HostInput {
    return {
        ...host,
        services: ports.map(open),
        notes: ports.map((port) => ({ ...{ port, proto: 'tcp' }, ntype: 'a', data: { text } })),
        vulns: ports.map((port) => ({ ...{ port, proto: 'tcp' }, name: 'v', info: text, exploited_at: new Date(0) })),
        closed_ports: { udp: [[1, 9]] },
    };
}

const ports = (from: number, count: number): readonly number[] => Array.from({ length: count }, (_, index) => from + index);

for (const { name, openMigrated } of databases) {
    t.test(`what is read aside on ${name}`, async (t) => {
        const { pool, stop } = await openMigrated();
        t.after(stop);
        t.beforeEach(() => startAfresh(pool));

        t.test('has each address once, in the order in which they came first, as all that was said of them', async (t) => {
            const hosts = manyHosts(1000);
            const again = hosts.flatMap((host, index) => (index % 3 === 0 ? [crowded(host, ports(1, 3), 'x')] : []));
            // So much that it is merged several times, each time with what the time before has made.
            const rounds = Array.from({ length: 12 }, (_, round) => again.map((host) => ({ ...host, comments: `${round}` })));
            const importId = randomUUID();
            const batches = await readAside(pool, importId, each([...hosts, ...rounds.flat()]), merging());
            const found: HostInput[] = [];
            for (const batch of batches) {
                found.push(...(await takeBack(pool, importId, batch)));
            }

            t.same(
                found.map(({ address }) => address),
                hosts.map(({ address }) => address),
            );
            t.ok(batches.every(({ size }) => size <= 150));
            const [first, second] = found;
            t.same(first, { ...JSON.parse(JSON.stringify(again[0])), comments: '11' });
            t.same([second?.services, second?.notes, second?.vulns], [[], [], []]);
            t.equal(found.filter(({ comments }) => comments === '11').length, again.length);
            t.same((await pool.query('select from scanwire.import_batches')).rowCount, 0);
        });

        t.test('is merged with a host that is read aside in parts', async (t) => {
            const [host = { address: '' }] = manyHosts(1);
            const input = [crowded(host, ports(1, 700), 'x'), ...manyHosts(300).slice(1), crowded(host, ports(400, 700), 'y')];
            const store = postgresInventory({ pool });
            const { workspace, ...first } = await store.importHosts('default', each(input));
            const again = await store.importHosts('default', each(input));

            t.match(first, {
                services: importCounts({ new: 1099 }),
                notes: importCounts({ new: 1400 }),
                vulns: importCounts({ new: 1400 }),
            });
            t.match(again, {
                hosts: importCounts({ unchanged: 300 }),
                services: importCounts({ unchanged: 1099 }),
                notes: importCounts({ unchanged: 1400 }),
                vulns: importCounts({ unchanged: 1400 }),
            });
            const [crowd] = await all(store.hosts, [workspace.id]);
            t.match(crowd, { service_count: 1099, note_count: 1400, vuln_count: 1400 });
        });

        t.test('is refused where the boundary of the workspace changes meanwhile', async (t) => {
            const store = postgresInventory({ pool });
            const source = async function* (): AsyncIterable<HostInput> {
                yield { address: '192.0.2.7' };
                await store.ensureWorkspace('lab');
                await store.updateWorkspace?.('lab', { boundary: '198.51.100.0/24', limit_to_network: true });
            };
            await t.rejects(store.importHosts('lab', source()), {
                ...{ code: 'CONFLICT', field: 'boundary' },
                message: 'The boundary of the workspace changed while the hosts were read',
            });
            t.match(await store.importHosts('lab', each([{ address: '198.51.100.7' }])), { hosts: importCounts({ new: 1 }) });
        });
    });
}
