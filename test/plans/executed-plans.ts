import pg from 'pg';
import type { Test } from 'tap';
import { migrate } from '../../adapters/postgres/index.ts';
import { testDatabase } from '../support/test-database.ts';

/** One connection that tells the plan of everything it executes, inside functions too. Its user must be a superuser. */
export interface ExplainedConnection {
    /** Has no other connection. */
    readonly pool: pg.Pool;
    /** What one statement of a client executes. @throws Error where the task runs none. */
    executed(task: () => Promise<unknown>): Promise<Execution>;
    /** The same of each of its statements, those within functions and triggers too. */
    each(task: () => Promise<unknown>): Promise<readonly Execution[]>;
    end(): Promise<void>;
}

/** What a statement did, with all that the functions did that it called. */
export interface Execution {
    /** Found in memory or read, each as often as it was asked for. Of the first one on a connection also those of the catalogue. */
    readonly pages: number;
    /** Expected by the planner: from 100,000 on PostgreSQL compiles a statement first, unless it is told not to. */
    readonly cost: number;
    /** Whether it was. */
    readonly compiled: boolean;
    /** Read of tables and indexes, each as often as it was read. */
    readonly rows: number;
    /** Begins the statement, so that it is found. */
    readonly statement: string;
    /** The whole of it, as it was sent. */
    readonly text: string;
    /** Of tables and indexes. */
    readonly scans: readonly Scan[];
}

export interface Scan {
    /** As PostgreSQL calls it, such as `Seq Scan`. */
    readonly type: string;
    readonly table: string;
    readonly index: string | null;
    readonly pages: number;
    readonly rows: number;
    /** Begins the statement, so that it is found. */
    readonly statement: string;
}

interface Explained {
    readonly 'Query Text': string;
    readonly Plan: PlanNode;
    readonly JIT?: object;
}

interface PlanNode {
    readonly 'Node Type': string;
    readonly 'Relation Name'?: string;
    readonly 'Index Name'?: string;
    readonly 'Total Cost': number;
    readonly 'Actual Rows': number;
    readonly 'Actual Loops': number;
    readonly 'Rows Removed by Filter'?: number;
    readonly 'Rows Removed by Index Recheck'?: number;
    readonly 'Shared Hit Blocks': number;
    readonly 'Shared Read Blocks': number;
    readonly Plans?: readonly PlanNode[];
}

/** Told to the client, so that no log of the server has to be read. */
const EXPLAIN = `
load 'auto_explain';
set auto_explain.log_min_duration = 0;
set auto_explain.log_analyze = on;
set auto_explain.log_buffers = on;
set auto_explain.log_timing = off;
set auto_explain.log_nested_statements = on;
set auto_explain.log_format = json;
set client_min_messages = log`;

const PLAN = /^duration: .* ms {2}plan:\n(.*)$/s;

/** A new connection. */
export async function explainedConnection(url: string): Promise<ExplainedConnection> {
    const pool = new pg.Pool({ connectionString: url, max: 1, idleTimeoutMillis: 0 });
    // The pool has ended before its connection has.
    pool.on('error', () => {});
    let told: string[] = [];
    pool.on('connect', (client) => client.on('notice', ({ message }) => told.push(message ?? '')));
    await pool.query(EXPLAIN);
    return {
        pool,
        async executed(task) {
            told = [];
            await task();
            return executionOf(told);
        },
        async each(task) {
            told = [];
            await task();
            return executionsOf(told);
        },
        end: () => pool.end(),
    };
}

/** A migrated database of the test's own, and a connection to it that tells its plans. */
export async function explainedDatabase(t: Test): Promise<{ readonly pool: pg.Pool; readonly connection: ExplainedConnection }> {
    const { url, drop } = await testDatabase();
    const pool = new pg.Pool({ connectionString: url });
    // The pool has ended before its connections have.
    pool.on('error', () => {});
    const connection = await explainedConnection(url);
    t.teardown(async () => {
        await connection.end();
        await pool.end();
        await drop();
    });
    await migrate(pool);
    await neverVacuum(pool);
    return { pool, connection };
}

/** Keeps the tables from being vacuumed and analysed by themselves: at another moment in each run. */
export async function neverVacuum(pool: pg.Pool): Promise<void> {
    await pool.query(`do $$ declare name text; begin
        for name in select tablename from pg_tables where schemaname = 'scanwire' loop
            execute format('alter table scanwire.%I set (autovacuum_enabled = off)', name);
        end loop;
    end $$`);
}

function executionOf(told: readonly string[]): Execution {
    const each = executionsOf(told);
    // What a function runs has ended, and is told of, before its caller.
    const outermost = each.at(-1);
    if (outermost === undefined) {
        throw new Error('The connection told of no plan');
    }

    const scans = each.flatMap((one) => one.scans);
    return { ...outermost, scans, rows: rowsOf(scans) };
}

function executionsOf(told: readonly string[]): readonly Execution[] {
    return told.flatMap((message) => {
        const [, json] = PLAN.exec(message) ?? [];
        if (json === undefined) {
            return [];
        }

        const { 'Query Text': text, Plan, JIT } = JSON.parse(json) as Explained;
        const statement = text.trim().replaceAll(/\s+/g, ' ').slice(0, 80);
        const scans = scansBelow(Plan, statement);
        return [
            { pages: pagesOf(Plan), cost: Plan['Total Cost'], compiled: JIT !== undefined, rows: rowsOf(scans), statement, text, scans },
        ];
    });
}

function scansBelow(node: PlanNode, statement: string): readonly Scan[] {
    const below = (node.Plans ?? []).flatMap((child) => scansBelow(child, statement));
    const { 'Node Type': type, 'Relation Name': table, 'Index Name': index } = node;
    const read = node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0);
    return /Scan$/.test(type) && (table ?? index) !== undefined
        ? [{ type, table: table ?? '', index: index ?? null, pages: pagesOf(node), rows: read * node['Actual Loops'], statement }, ...below]
        : below;
}

function rowsOf(scans: readonly Scan[]): number {
    return scans.reduce((sum, { rows }) => sum + rows, 0);
}

function pagesOf(node: PlanNode): number {
    return node['Shared Hit Blocks'] + node['Shared Read Blocks'];
}
