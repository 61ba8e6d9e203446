import pg from 'pg';
import { present } from '../../../adapters/contract/assertions.ts';
import type { EmbeddedDatabase } from '../../../adapters/pglite/embedded-pool.ts';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';
import { migrate, type PoolLike } from '../../../adapters/postgres/index.ts';
import { migratedDatabase, migratedMemory } from '../../support/migrated-database.ts';
import { type TestDatabase, testDatabase } from '../../support/test-database.ts';

export interface OpenDatabase {
    readonly pool: PoolLike & { readonly options: object; end(): Promise<void> };
    stop(): Promise<void>;
}

export interface TestedDatabase {
    readonly name: string;
    /** One that is empty, with no schema of ours. */
    open(): Promise<OpenDatabase>;
    /** One whose schema is up to date. */
    openMigrated(): Promise<OpenDatabase>;
}

export const databases: readonly TestedDatabase[] = [
    {
        name: 'PostgreSQL',
        open: async () => opened(await testDatabase()),
        openMigrated: async () => opened(await migratedDatabase()),
    },
    {
        name: 'PGlite',
        open: async () => embedded(await openMemoryDatabase()),
        openMigrated: async () => embedded(await migratedMemory()),
    },
];

function opened({ url, drop }: TestDatabase): OpenDatabase {
    const pool = new pg.Pool({ connectionString: url, max: 20 });
    // The pool has ended before its connections have; the drop may still meet one of them.
    pool.on('error', () => {});
    return {
        pool,
        async stop() {
            await pool.end();
            await drop();
        },
    };
}

function embedded(pool: EmbeddedDatabase): OpenDatabase {
    return { pool, stop: () => pool.end() };
}

/** The one of this name. @throws Error when there is none. */
export function databaseNamed(name: string): TestedDatabase {
    return present(
        databases.find((one) => one.name === name),
        name,
    );
}

/** The sequences of the inventory, of keys and of records begin again. */
const RESTARTED = `select setval(objid::regclass, seqstart, false) from pg_depend join pg_sequence on seqrelid = objid
    where classid = 'pg_class'::regclass and deptype in ('a', 'i') and refobjid = any ('{
        scanwire.workspaces, scanwire.hosts, scanwire.services, scanwire.notes, scanwire.vulns, scanwire.sessions, scanwire.records
    }'::regclass[])`;

/** Brings the database to where a fresh one is after its migrations. */
export async function startAfresh(pool: PoolLike): Promise<void> {
    await migrate(pool);
    await emptyTables(pool, ['workspaces', 'api_keys', 'records', 'tombstones']);
    await pool.query(RESTARTED);
    await pool.query(`insert into scanwire.workspaces (name) values ('default')`);
}

/**
 * Beyond so many bytes of all tables, rows that are gone included, they are truncated. Below, to delete the few rows that a test leaves behind takes a
 * tenth of the time: to truncate makes new files for every table and index, and all that was planned is planned again.
 */
const LARGE = 1_000_000;

/** Leaves no row in these tables of the schema, nor in those that refer to them. No trigger notices, and sequences go on. */
export async function emptyTables(pool: PoolLike, names: readonly string[]): Promise<void> {
    await pool.query(`do $$
        declare
            emptied regclass[];
            one regclass;
        begin
            with recursive reached (oid) as (
                select unnest('{${names.map((name) => `scanwire.${name}`).join()}}'::regclass[])::oid
                union select conrelid from pg_constraint join reached on confrelid = reached.oid where contype = 'f'
            )
            select array_agg(oid::regclass) into emptied from reached;

            if (select sum(pg_relation_size(name)) from unnest(emptied) as all_of (name)) > ${LARGE} then
                execute 'truncate ' || array_to_string(emptied, ', ');
            else
                set local session_replication_role = replica;
                foreach one in array emptied loop
                    execute 'delete from ' || one;
                end loop;
            end if;
        end $$`);
}
