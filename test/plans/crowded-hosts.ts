import type pg from 'pg';
import type { Test } from 'tap';
import { postgresInventory } from '../../adapters/postgres/index.ts';
import { MAX_ALIKE } from '../../lib/inventory/findings.ts';
import type { HostInput, ServiceInput } from '../../lib/inventory/host.ts';
import { each } from '../adapters/postgres/imports/imported.ts';
import { type ExplainedConnection, explainedDatabase } from './executed-plans.ts';

/** So many services, notes or vulnerabilities a crowded host has. */
const MANY = 4_000;
/** The most rows of tables and indexes that a statement may read for a piece of one host: fewer than the host has. */
const MAX_OF_HOST = 3_500;
/** The same for a slice of several. */
const MAX_OF_SLICE = 10_000;
/** Just fewer services than make a host a crowded one. */
const ALMOST = 499;

const ADDRESS = '192.0.2.7';
const OTHER: readonly HostInput[] = [{ address: '192.0.2.9' }];
const numbers = (count: number): readonly number[] => Array.from({ length: count }, (_, index) => index + 1);
const ports = (count: number, name = 'http'): ServiceInput[] =>
    numbers(count).map((port) => ({ port, proto: 'tcp', state: 'open', name, info: null }));

/** What a crowded host may have many of, told with a text. */
const CROWDS: Readonly<Record<string, (text: string) => HostInput>> = {
    services: (text) => ({ address: ADDRESS, services: ports(MANY, text) }),
    'notes of many types': (text) => ({
        address: ADDRESS,
        notes: numbers(MANY).map((index) => ({ ntype: `type ${index}`, data: { text } })),
    }),
    'vulnerabilities of one name on many services': (text) => ({
        address: ADDRESS,
        services: ports(MANY),
        vulns: numbers(MANY).map((port) => ({ ...{ port, proto: 'tcp' }, name: 'alike', info: text })),
    }),
    'notes on one service, as many alike as there may be': (text) => ({
        address: ADDRESS,
        services: ports(1),
        notes: numbers(MANY).map((index) => ({
            ...{ port: 1, proto: 'tcp' },
            ntype: index <= MAX_ALIKE ? 'alike' : `type ${index}`,
            data: { text },
        })),
    }),
    'services that are closed with others': (text) => ({
        address: ADDRESS,
        ...(text === 'other' ? { closed_ports: { tcp: [[1, 65_535]] } } : { services: ports(MANY, text) }),
    }),
};

/** Imports that follow each other, of which each leaves to the next one what it needs. */
const IMPORTS = [
    ['a dry run of a new host', 'first', { dryRun: true }],
    ['a new host', 'first', {}],
    ['the same again', 'first', {}],
    ['other ones', 'other', {}],
    ['a dry run of a replacement by the same', 'other', { replace: true, dryRun: true }],
    ['a replacement by other ones', 'last', { replace: true }],
    ['a dry run of a replacement by another host', OTHER, { replace: true, dryRun: true }],
    ['a replacement by the host alone', [{ address: ADDRESS }], { replace: true }],
    ['a new host, once more', 'again', {}],
    ['a replacement by another host', OTHER, { replace: true }],
] as const;

/**
 * Checks how much is read of hosts with many rows below them.
 *
 * @param learn What the database does before each import.
 */
export function readsOfCrowdedHosts(t: Test, learn: (pool: pg.Pool) => Promise<unknown>): void {
    for (const [what, crowded] of Object.entries(CROWDS)) {
        t.test(`reads of a crowded host a piece at a time: ${what}`, async (t) => {
            const { pool, connection } = await explainedDatabase(t);
            const store = postgresInventory({ pool: connection.pool });
            for (const [name, told, options] of IMPORTS) {
                const hosts = typeof told === 'string' ? [crowded(told)] : told;
                await learn(pool);
                await readsFew(t, { name, connection, most: MAX_OF_HOST }, () => store.importHosts('default', each(hosts), options));
            }
        });
    }
}

/**
 * Checks how much is read of hosts that have just fewer rows below them. In files of its own: each of the others takes long.
 *
 * @param learn As of {@link readsOfCrowdedHosts}.
 */
export function readsOfAlmostCrowdedHosts(t: Test, learn: (pool: pg.Pool) => Promise<unknown>): void {
    t.test(`reads of hosts that are almost crowded a few at a time${learn.length > 0 ? ', analysed' : ''}`, async (t) => {
        const { pool, connection } = await explainedDatabase(t);
        const store = postgresInventory({ pool: connection.pool });
        const hosts: readonly HostInput[] = numbers(40).map((index) => ({ address: `192.0.2.${index}`, services: ports(ALMOST) }));
        await store.importHosts('default', each(hosts));
        const closed: readonly HostInput[] = hosts.map(({ address }) => ({ address, closed_ports: { tcp: [[1, 65_535]] } }));
        for (const [name, input, options] of [
            ['a dry run that closes them', closed, { dryRun: true }],
            ['a replacement that closes them', closed, { replace: true }],
            ['a dry run of a replacement by another host', OTHER, { replace: true, dryRun: true }],
            ['a replacement by another host', OTHER, { replace: true }],
        ] as const) {
            await learn(pool);
            await readsFew(t, { name, connection, most: MAX_OF_SLICE }, () => store.importHosts('default', each(input), options));
        }
    });
}

/** Checks that no statement of the task reads more rows than `most`, nor is compiled, which takes longer than what it does. */
async function readsFew(
    t: Test,
    { name, connection, most }: { readonly name: string; readonly connection: ExplainedConnection; readonly most: number },
    task: () => Promise<unknown>,
): Promise<void> {
    const executions = await connection.each(task);
    const [worst] = executions.toSorted((a, b) => b.rows - a.rows);
    const [scan] = (worst?.scans ?? []).toSorted((a, b) => b.rows - a.rows);
    t.ok(worst !== undefined && worst.rows <= most, `${name}: ${worst?.rows} rows, ${scan?.rows} of ${scan?.index} in ${worst?.statement}`);
    t.notOk(executions.find(({ compiled }) => compiled)?.statement, `${name}: nothing is compiled`);
}
