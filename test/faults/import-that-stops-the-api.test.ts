import { setImmediate as turn } from 'node:timers/promises';
import t from 'tap';
import { openMemoryDatabase } from '../../adapters/pglite/index.ts';
import { migrate, type PoolLike, postgresInventory } from '../../adapters/postgres/index.ts';
import { GIVES_WAY } from '../../lib/giving-way.ts';
import type { HostInput } from '../../lib/inventory/host.ts';
import type { Executor } from '../../lib/transaction.ts';

const HOSTS = 5_000;
const FEW = 200;
const MANY = 12_000;

/** The piece that goes on when a request comes, and one more that was asked for before it. */
const MOST_PIECES = 2;

t.test('an import into the embedded database never holds its connection for long', async (t) => {
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    for (const round of ['new hosts', 'hosts that are there']) {
        const pieces: number[] = [];
        const importing = underWay(postgresInventory({ pool: counted(pool, pieces) }).importHosts('default', scan(round)));
        const answers = await answersUntil(pool, importing.ended, () => pieces.length);
        const { hosts } = await importing.result;
        const handled = pieces.reduce((sum, one) => sum + one, 0);
        t.equal(hosts.new + hosts.changed, HOSTS);
        t.ok(Math.max(...pieces) < handled / 5, `${round}: ${Math.max(...pieces)} of ${handled} rows were handled in one piece`);
        t.ok(Math.max(...answers) <= MOST_PIECES, `${round}: a request waited for ${Math.max(...answers)} pieces of ${pieces.length}`);
        t.ok(answers.length > 20, `${round}: ${answers.length} requests were answered meanwhile`);
    }
});

const CHAIN = 10;

t.test('what takes several statements does not wait for a piece before each of them', async (t) => {
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    const pieces: number[] = [];
    const importing = underWay(postgresInventory({ pool: counted(pool, pieces, false) }).importHosts('default', scan('a')));
    const store = postgresInventory({ pool });
    const waited: number[] = [];
    while (!importing.ended()) {
        const before = pieces.length;
        for (let statement = 0; statement < CHAIN; statement += 1) {
            await store.workspaces.get([], 1);
        }
        waited.push(pieces.length - before);
        await nextPiece(pieces, importing.ended);
    }
    await importing.result;
    const usual = waited.sort((a, b) => a - b)[waited.length >> 1] ?? Number.NaN;
    t.ok(waited.length > 10, `${waited.length} were answered`);
    t.ok(usual <= MOST_PIECES, `${CHAIN} statements waited for ${usual} pieces`);
});

async function nextPiece(pieces: readonly number[], ended: () => boolean): Promise<void> {
    for (const before = pieces.length; pieces.length === before && !ended(); ) {
        await turn();
    }
}

t.test('nor does one of a single host, however much is below it', async (t) => {
    const pool = await openMemoryDatabase();
    t.teardown(() => pool.end());
    await migrate(pool);
    for (const [round, host, options, expected] of [
        ['a new host that is not kept', withServices('new'), { dryRun: true }, { services: { new: MANY } }],
        ['a new host', withServices('new'), {}, { services: { new: MANY } }],
        ['one that is there', withServices('changed'), {}, { services: { changed: MANY } }],
        ['services that are closed with others', CLOSED, {}, { services: { gone: MANY } }],
        ['findings', withFindings('new'), {}, { notes: { new: MANY }, vulns: { new: MANY } }],
        ['findings that are others', withFindings('changed'), {}, { notes: { changed: MANY }, vulns: { changed: MANY } }],
        [
            'a dry run that names none of them',
            NOTHING,
            REPLACED,
            { services: { gone: MANY }, notes: { gone: MANY }, vulns: { gone: MANY } },
        ],
        ['none of the findings any more', CLOSED, { replace: true }, { notes: { gone: MANY }, vulns: { gone: MANY } }],
        ['findings again', withFindings('again'), {}, { notes: { new: MANY }, vulns: { new: MANY } }],
        ['another host instead', OTHER, { replace: true }, { services: { gone: MANY }, notes: { gone: MANY }, vulns: { gone: MANY } }],
    ] as const) {
        const pieces: number[] = [];
        const importing = underWay(postgresInventory({ pool: counted(pool, pieces) }).importHosts('default', only(host), options));
        const answers = await answersUntil(pool, importing.ended, () => pieces.length);
        t.match(await importing.result, expected, round);
        const handled = pieces.reduce((sum, one) => sum + one, 0);
        t.ok(Math.max(...pieces) < handled / 5, `${round}: ${Math.max(...pieces)} of ${handled} rows were handled in one piece`);
        t.ok(Math.max(...answers) <= MOST_PIECES, `${round}: a request waited for ${Math.max(...answers)} pieces of ${pieces.length}`);
        t.ok(answers.length > 20, `${round}: ${answers.length} requests were answered meanwhile`);
    }
});

t.test(
    'nor does a transaction of one run two statements that the database does not know yet, nor an analysis while others wait',
    async (t) => {
        const pool = await openMemoryDatabase();
        t.teardown(() => pool.end());
        await migrate(pool);
        const watched = watching(pool);
        const store = postgresInventory({ pool: watched.pool });
        const warnings: string[] = [];
        const onWarning = (message: string) => warnings.push(message);
        for (const [options, expected] of [
            [{ dryRun: true }, { hosts: { new: FEW }, notes: { new: FEW } }],
            [{}, { hosts: { new: FEW }, services: { new: 2 * FEW }, notes: { new: FEW }, vulns: { new: FEW } }],
            [{ replace: true }, { hosts: { unchanged: FEW }, notes: { unchanged: FEW } }],
        ] as const) {
            t.match(await store.importHosts('default', withFindingsEach(scan('a', FEW)), { ...options, onWarning }), expected);
        }

        const news = watched.transactions.map((texts) => texts.filter(isNews(new Set())));
        const known = new Set<string>();
        const unknown = watched.transactions.map((texts) => texts.filter(isNews(known)).length);
        t.ok(Math.max(...news.map(({ length }) => length)) > 3, 'a slice has several large statements');
        t.equal(Math.max(...unknown), 1);
        const several = watched.transactions.findIndex((texts) => texts.filter(isNews(new Set())).length > 1);
        const before = watched.transactions.slice(0, several).flat();
        const times = [...(news[several] ?? [])].map((text) => before.filter((other) => other === text).length);
        t.ok(Math.min(...times) >= 3, 'each ran once with nothing to do, and twice with rows, before they have a transaction together');
        t.equal(watched.analyses.length, 4);
        t.ok(watched.analyses.every((text) => text.startsWith(GIVES_WAY)));
        t.strictSame(warnings, [], 'one that is cut off is left to the database');
    },
);

/** Whether a statement is so large that to plan it takes long, and was not seen before. */
const isNews = (seen: Set<string>) => (text: string) => text.length > 1_000 && seen.size < seen.add(text).size;

async function* withFindingsEach(hosts: AsyncIterable<HostInput>): AsyncGenerator<HostInput> {
    for await (const host of hosts) {
        yield { ...host, notes: [{ ntype: 'note', data: { n: 1 } }], vulns: [{ name: 'vuln', info: '' }] };
    }
}

/** Notes what is run in each transaction, and each analysis, which is cut off. */
function watching(pool: PoolLike) {
    const transactions: string[][] = [];
    const analyses: string[] = [];

    async function run<Row>(on: Executor, text: string, values?: unknown[]) {
        if (text.startsWith('begin')) {
            transactions.push([]);
        }
        transactions.at(-1)?.push(text);
        if (text.includes('analyze scanwire')) {
            analyses.push(text);
            throw Object.assign(new Error('canceling statement due to user request'), { code: '57014' });
        }
        return await on.query<Row>(text, values);
    }

    const connect = async () => {
        const client = await pool.connect();
        return {
            query: <Row>(text: string, values?: unknown[]) => run<Row>(client, text, values),
            on: client.on.bind(client),
            removeListener: client.removeListener.bind(client),
            release: client.release.bind(client),
        };
    };
    const query = <Row>(text: string, values?: unknown[]) => run<Row>(pool, text, values);
    return { pool: { embedded: true, query, connect }, transactions, analyses };
}

const ADDRESS = '10.0.0.1';
const NOTHING: HostInput = { address: ADDRESS };
const OTHER: HostInput = { address: '10.0.0.2' };
const REPLACED = { replace: true, dryRun: true } as const;
const CLOSED: HostInput = { address: ADDRESS, closed_ports: { tcp: [[1, 65_535]] } };

function withServices(name: string): HostInput {
    const service = { proto: 'tcp', state: 'open', name, info: null } as const;
    return { address: ADDRESS, services: Array.from({ length: MANY }, (_, index) => ({ ...service, port: index + 1 })) };
}

function withFindings(info: string): HostInput {
    const indexes = Array.from({ length: MANY }, (_, index) => index);
    return {
        address: ADDRESS,
        notes: indexes.map((index) => ({ ntype: `note ${index}`, data: { info } })),
        vulns: indexes.map((index) => ({ name: `vuln ${index}`, info })),
    };
}

async function* only(host: HostInput): AsyncGenerator<HostInput> {
    yield host;
}

async function* scan(name: string, hosts = HOSTS): AsyncGenerator<HostInput> {
    const service = { port: 22, proto: 'tcp', state: 'open', name: 'ssh', info: null } as const;
    for (let index = 0; index < hosts; index += 1) {
        yield { address: `10.0.${index >> 8}.${index & 255}`, name, services: [service, { ...service, port: 443 }] };
    }
}

/** Rows that the database has read and written so far, as its tables count them. */
const HANDLED = `select coalesce(sum(seq_tup_read + coalesce(idx_tup_fetch, 0) + n_tup_ins + n_tup_upd + n_tup_del), 0)::int as handled
from pg_catalog.pg_stat_user_tables`;

/** Notes of each transaction of the connections how many rows the database handled in it, unless only the transactions are to be counted. */
function counted(pool: PoolLike, pieces: number[], rowsToo = true): PoolLike {
    return {
        embedded: true,
        othersFirst: (patience) => pool.othersFirst?.(patience) ?? Promise.resolve(),
        query: pool.query.bind(pool),
        async connect() {
            const client = await pool.connect();
            const handled = async (): Promise<number> => {
                if (!rowsToo) {
                    return 0;
                }
                await client.query('select pg_catalog.pg_stat_force_next_flush()');
                const { rows } = await client.query<{ handled: number }>(HANDLED);
                return rows[0]?.handled ?? Number.NaN;
            };
            let before = Number.NaN;
            return {
                async query<Row>(text: string, values?: unknown[]) {
                    if (text.startsWith('begin')) {
                        before = await handled();
                    }
                    const result = await client.query<Row>(text, values);
                    if (text === 'commit' || text === 'rollback') {
                        pieces.push((await handled()) - before);
                    }
                    return result;
                },
                on: client.on.bind(client),
                removeListener: client.removeListener.bind(client),
                release: client.release.bind(client),
            };
        },
    };
}

/** How many pieces of the import passed between request and answer of each of the readings that follow each other until something has ended. */
async function answersUntil(pool: PoolLike, ended: () => boolean, pieces: () => number): Promise<readonly number[]> {
    const store = postgresInventory({ pool });
    const answers: number[] = [];
    while (!ended()) {
        const before = pieces();
        await store.workspaces.get([], 1);
        answers.push(pieces() - before);
        await turn();
    }

    return answers;
}

function underWay<T>(result: Promise<T>): { readonly result: Promise<T>; ended(): boolean } {
    let ended = false;
    const end = (): void => {
        ended = true;
    };
    result.then(end, end);
    return { result, ended: () => ended };
}
