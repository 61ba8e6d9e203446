import pg from 'pg';
import { sampleExporter } from '../../adapters/contract/webhooks/fixture.ts';
import { migrate, postgresWebhooks } from '../../adapters/postgres/index.ts';
import { median } from '../../bench/comparison.ts';
import { testDatabase } from '../support/test-database.ts';
import { type Execution, type ExplainedConnection, explainedConnection, neverVacuum, type Scan } from './executed-plans.ts';
import { keep, type Sending, send } from './kept-rows.ts';
import { AT_RATE, KEYED_LIST, LOOK_THROUGH, type Way, wayOf } from './way.ts';

/** The most that a statement may ask for, for one row. */
const MAX_PAGES = 60;
/** For two rows; or for one at a rate, which is looked up and paid besides. */
const MAX_PAGES_OF_MORE = 80;
const OF_TWO = / two$/;
/** For two of a list with keys of the caller's, each of which is written once before its event and once behind it, with its entries in two indexes. */
const MAX_PAGES_OF_KEYED = 150;
/** Whatever is kept is kept in these. One that is empty may be read as a whole, by who plans again once it is not. */
const GROWING = new Set(['events', 'deliveries', 'attempts', 'idempotency_keys']);
/** Of abilities that no exporter here uses: not even planned for, so that they cost nothing. */
const UNUSED = new Set(['exporter_rates', 'exporter_turns', 'order_places']);
/** A prepared statement, inside functions too, is planned for its parameters five times and then perhaps once for all. */
const RUNS_OF_NEW = 6;
const RUNS_OF_OLD = 3;

/** Somebody else who reads, from before on and for as long as this is examined. */
type Reader = 'none' | 'old snapshot';

/** One after the other, in the same tables. */
export interface State {
    readonly name: string;
    /** Deliveries that are kept. */
    readonly rows?: number;
    /** Those that are then sent, without a vacuum. */
    readonly sent?: Sending;
    readonly reader?: Reader;
}

/** Up to so many deliveries that are kept, then so many that are sent without a vacuum. */
export function statesOf(most: number, sent: number): readonly State[] {
    return [
        { name: 'nothing kept' },
        { name: '500 kept', rows: 500 },
        { name: '8,000 kept', rows: 8_000 },
        { name: `${most} kept`, rows: most },
        { name: `${sent} just sent`, rows: most, sent: { count: sent } },
        { name: `${sent} just sent that all waited`, rows: most, sent: { count: sent, waiting: true } },
        { name: `${sent / 3} just sent beside an old snapshot`, rows: most, sent: { count: sent / 3 }, reader: 'old snapshot' },
    ];
}

/** Of one statement, in one state and on one connection. */
export interface Finding {
    readonly where: string;
    readonly statement: string;
    readonly pages: number;
    /** What must not be, in words. */
    readonly problems: readonly string[];
}

/** Tables of a test's own. */
export interface Examination {
    readonly pool: pg.Pool;
    /** Brings the tables to the state, and executes every statement on a new connection and on one that planned all when they were (nearly) empty. */
    findings(state: State): Promise<readonly Finding[]>;
    end(): Promise<void>;
}

/**
 * When the planner counts the rows that are kept: as soon as they are there, never, or only when there was one, as in a database that is new and then
 * busy until the next analysis.
 */
export type Analysed = 'freshly' | 'never' | 'with one row';

export const ANALYSED: readonly Analysed[] = ['freshly', 'never', 'with one row'];

/** @param server The URL of one that nobody else uses, see `quietServer`. */
export async function examination(analysed: Analysed, server?: string): Promise<Examination> {
    const { url, drop } = await testDatabase('template1', server);
    const pool = new pg.Pool({ connectionString: url });
    // The pool has ended before its connections have.
    pool.on('error', () => {});
    await migrate(pool);
    await neverVacuum(pool);
    await pool.query(CLOCK);
    await addExporters(pool);
    if (analysed === 'with one row') {
        await keep(pool, 1);
        await pool.query('vacuum analyze');
    }
    const early = await explainedConnection(url);
    await runsOf(pool, early, RUNS_OF_NEW);
    return {
        pool,

        async findings({ name, rows = 0, sent, reader = 'none' }) {
            await keep(pool, rows);
            if (analysed === 'freshly') {
                await pool.query('vacuum analyze');
            }

            const closeReader = reader === 'none' ? async (): Promise<void> => {} : await oldSnapshot(pool);
            if (sent !== undefined) {
                await send(postgresWebhooks({ pool, notify: false }).deliveries, sent);
            }
            const fresh = await explainedConnection(url);
            const where = `${name}, analysed ${analysed}`;
            const holds = { isEmpty: rows === 0, isJustSent: sent !== undefined };
            const found = [
                ...(await findingsOn(pool, early, RUNS_OF_OLD, `${where}, planned when empty`, holds)),
                ...(await findingsOn(pool, fresh, RUNS_OF_NEW, `${where}, planned now`, holds)),
            ];
            await fresh.end();
            await closeReader();
            return found;
        },

        async end() {
            await early.end();
            await pool.end();
            await drop();
        },
    };
}

/** Between two runs, in which the time stands still, so that they are alike. */
const PASSED = "select setval('public.passed_seconds', last_value + 6) from public.passed_seconds";
const CLOCK = `
create sequence public.passed_seconds minvalue 0 start 0;
create or replace function scanwire.now() returns timestamptz language sql volatile as $$
    select timestamptz '2026-11-23 03:50' + (select p.last_value from public.passed_seconds p) * interval '1 second'
$$`;

/** The exporter that is sent to, and the one that chooses what it gets; others have deliveries that are done. */
export async function addExporters(pool: pg.Pool): Promise<void> {
    const { exporters } = postgresWebhooks({ pool, notify: false });
    await exporters.insert(sampleExporter());
    await exporters.insert(sampleExporter({ kinds: ['other_*'] }));
    for (let number = 1; number < 10; number += 1) {
        await exporters.insert(sampleExporter({ type: 'investigation_legacy', legacy: true }));
    }
}

/** Nothing that is changed from now on can be removed until it is closed. */
async function oldSnapshot(pool: pg.Pool): Promise<() => Promise<void>> {
    const client = await pool.connect();
    await client.query('begin isolation level repeatable read');
    await client.query('select count(*) from scanwire.exporters');
    return async () => {
        await client.query('commit');
        client.release();
    };
}

async function runsOf(pool: pg.Pool, connection: ExplainedConnection, count: number): Promise<readonly Way[]> {
    const runs: Way[] = [];
    while (runs.length < count) {
        await pool.query(PASSED);
        runs.push(await wayOf(connection));
    }
    return runs;
}

/** What the tables hold. */
interface Holding {
    readonly isEmpty: boolean;
    /** Whether there is what was sent since the last vacuum. */
    readonly isJustSent: boolean;
}

/** What costs too much is looked at once more: a cost of what is kept is there each time, that of a page which was just being split is not. */
async function findingsOn(
    pool: pg.Pool,
    connection: ExplainedConnection,
    runs: number,
    where: string,
    holds: Holding,
): Promise<readonly Finding[]> {
    const found = findingsOf(where, await runsOf(pool, connection, runs), holds);
    if (found.every(({ problems }) => problems.length === 0)) {
        return found;
    }

    const again = findingsOf(where, await runsOf(pool, connection, runs), holds);
    return found.map((finding, number) => (finding.problems.length === 0 ? finding : (again[number] as Finding)));
}

function findingsOf(where: string, runs: readonly Way[], { isEmpty, isJustSent }: Holding): readonly Finding[] {
    return [...(runs[0]?.keys() ?? [])].map((statement) => {
        const executions = runs.map((run) => run.get(statement) as Execution);
        // Once in five seconds it passes the index entries of all that has waited since the last vacuum, which no mark may pass by. So it costs what
        // was just sent, without a limit, and may cost nothing for what is kept.
        const mayBeCostly = statement === LOOK_THROUGH && isJustSent;
        // All but half of them: a connection learns what it needs of the catalogue, and once more when there is something to do; and one run in some
        // comes upon what died in the pages that its own rows happen to lie in, which is cleared out by that.
        const pages = median(executions.map((execution) => execution.pages));
        const isRated = statement.startsWith(AT_RATE);
        const ofOthers = isRated || OF_TWO.test(statement) ? MAX_PAGES_OF_MORE : MAX_PAGES;
        const most = statement === KEYED_LIST ? MAX_PAGES_OF_KEYED : ofOthers;
        const costly = ({ type, table, pages }: Scan): boolean =>
            (pages > most && !mayBeCostly) || (UNUSED.has(table) && !isRated) || (type === 'Seq Scan' && GROWING.has(table) && !isEmpty);
        const scans = executions.flatMap((execution) => execution.scans).filter(costly);
        const problems = [
            ...(pages > most && !mayBeCostly ? [`${pages} pages`] : []),
            ...scans.map(({ type, table, index, pages, statement }) => `${type} of ${index ?? table}, ${pages} pages: ${statement}`),
        ];
        return { where, statement, pages, problems: problems.slice(0, 2) };
    });
}
