import { randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import t from 'tap';
import { removeAside, takeBack } from '../../../../adapters/postgres/imports/import-batches.ts';
import { readAside } from '../../../../adapters/postgres/imports/read-aside.ts';
import { type PoolLike, postgresInventory } from '../../../../adapters/postgres/index.ts';
import type { HostInput, ServiceInput } from '../../../../lib/inventory/host.ts';
import { importCounts } from '../../../../lib/inventory/import-counts.ts';
import { merging } from '../../../../lib/inventory/mentions.ts';
import type { Executor } from '../../../../lib/transaction.ts';
import { seeded } from '../../../support/seeded.ts';
import { databases, startAfresh } from '../databases.ts';
import { failingOnceAt } from '../failing-pools.ts';
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

/** A pool that tells of each batch when its insert begins, and when it has ended. */
function telling(pool: PoolLike, tell: (event: 'begins' | 'ends') => unknown): Executor {
    return {
        async query<Row>(sql: string, values?: unknown[]) {
            const isInsert = sql.startsWith('insert into scanwire.import_batches');
            await (isInsert && tell('begins'));
            const result = await pool.query<Row>(sql, values);
            await (isInsert && tell('ends'));
            return result;
        },
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

        t.test('is read again a few times, however many hosts come in whatever order', async (t) => {
            const random = seeded(1);
            for (const count of [1_500, 3_000]) {
                const hosts = manyHosts(count);
                const again = Array.from({ length: 4 }, (_, port) => hosts.map((host) => ({ ...host, services: [open(port + 1)] }))).flat();
                const shuffled = again.map((host) => ({ host, at: random() })).toSorted((one, other) => one.at - other.at);
                let takenBack = 0;
                const counting: Executor = {
                    query: (sql, values) => {
                        takenBack += sql.startsWith('delete from scanwire.import_batches') ? 1 : 0;
                        return pool.query(sql, values);
                    },
                };
                const source = each([...hosts, ...shuffled.map(({ host }) => host)]);
                const importId = randomUUID();
                await readAside(counting, importId, source, merging(), { least: 500, ofEach: 100, most: 200_000 });
                await removeAside(pool, importId);

                t.ok(takenBack <= 12 * (count / 150), `${takenBack} times for ${count} hosts`);
            }
        });

        t.test('is read while the batch before is stored, of which there is never more than one', async (t) => {
            const events: string[] = [];
            const source = async function* (): AsyncGenerator<HostInput> {
                for (const host of manyHosts(450)) {
                    events.push('read');
                    yield host;
                }
            };
            const importId = randomUUID();
            const told = telling(pool, (event) => events.push(event));
            await readAside(told, importId, source(), merging());
            await removeAside(pool, importId);
            const first = events.indexOf('begins');
            t.equal(events.slice(first, events.indexOf('ends')).filter((event) => event === 'read').length, 150);
            const inserts = events.filter((event) => event !== 'read');
            t.same(inserts, ['begins', 'ends', 'begins', 'ends', 'begins', 'ends']);
        });

        t.test('takes what is said again of a host whose batch is being stored for later', async (t) => {
            const [first = { address: '' }, ...others] = manyHosts(151);
            const events = new EventEmitter();
            const read = once(events, 'read');
            const source = async function* (): AsyncGenerator<HostInput> {
                yield* [first, ...others, { ...first, comments: 'again' }];
                events.emit('read');
            };
            const importId = randomUUID();
            const held = telling(pool, (event) => (event === 'ends' ? read : []));
            const batches = await readAside(held, importId, source(), merging());
            const found: HostInput[] = [];
            for (const batch of batches) {
                found.push(...(await takeBack(pool, importId, batch)));
            }

            t.same(
                found.map(({ address }) => address),
                [first, ...others].map(({ address }) => address),
            );
            t.match(found[0], { ...first, comments: 'again' });
        });

        t.test('ends with the insert that is under way when the source fails', async (t) => {
            const events = new EventEmitter();
            const fails = once(events, 'fails');
            const source = async function* (): AsyncGenerator<HostInput> {
                yield* manyHosts(151);
                events.emit('fails');
                throw new Error('the source broke');
            };
            const told: string[] = [];
            const held = telling(pool, (event) => {
                told.push(event);
                return event === 'begins' ? fails : [];
            });
            const importId = randomUUID();
            await t.rejects(readAside(held, importId, source(), merging()), { message: 'the source broke' });
            t.same(told, ['begins', 'ends']);
            await removeAside(pool, importId);

            await t.rejects(postgresInventory({ pool }).importHosts('default', source()), { message: 'the source broke' });
            t.same((await pool.query('select from scanwire.import_batches')).rowCount, 0);
        });

        t.test('fails with the database at once, also where the source says nothing more', async (t) => {
            const events = new EventEmitter();
            const [speaks, ended] = [once(events, 'speaks'), once(events, 'ended')];
            const source = async function* (): AsyncGenerator<HostInput> {
                try {
                    yield* manyHosts(151);
                    await speaks;
                    yield { address: '192.0.2.7' };
                } finally {
                    events.emit('ended');
                }
            };
            const failing = failingOnceAt(pool, /^insert into scanwire.import_batches/);
            await t.rejects(postgresInventory({ pool: failing }).importHosts('default', source()), { message: 'failed' });
            t.same((await pool.query('select from scanwire.import_batches')).rowCount, 0);
            events.emit('speaks');
            await ended;
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

        t.test('has of several services of one port the last', async (t) => {
            const store = postgresInventory({ pool });
            const told = (...names: string[]): HostInput => ({
                address: '192.0.2.7',
                services: [open(80), ...names.map((name) => ({ ...open(22), name })), open(443)],
            });
            const { workspace, services } = await store.importHosts('default', each([told('first', 'second')]));
            t.same(services, importCounts({ new: 3 }));
            const listed = async () => (await all(store.workspaceServices, [workspace.id])).map(({ port, name }) => [port, name]);
            const names = (ssh: string) => [
                [80, ''],
                [22, ssh],
                [443, ''],
            ];
            t.same(await listed(), names('second'));
            t.match(await all(store.hosts, [workspace.id]), [{ service_count: 3 }]);

            const again = await store.importHosts('default', each([told('third', 'second')]));
            t.same(again.services, importCounts({ unchanged: 3 }));
            const changed = await store.importHosts('default', each([told('second', 'third')]));
            t.same(changed.services, importCounts({ changed: 1, unchanged: 2 }));
            t.same(await listed(), names('third'));
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
