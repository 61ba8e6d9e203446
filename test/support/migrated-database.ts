import { existsSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { brotliCompressSync, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import pg from 'pg';
import type { Test } from 'tap';
import { startDatabaseThread } from '../../adapters/pglite/database-thread.ts';
import { type EmbeddedDatabase, embeddedPool } from '../../adapters/pglite/embedded-pool.ts';
import { openEmbeddedDatabase } from '../../adapters/pglite/index.ts';
import { migrate } from '../../adapters/postgres/index.ts';
import { type TestDatabase, testDatabase } from './test-database.ts';

/*
 * Databases whose schema is up to date, for tests that do not look at how it came to be. They are copies of one: to migrate takes six tenths of a second
 * of the processor's time, to copy what was migrated as little as to copy what is empty.
 */

/** Where the compiled tests are. */
const BUILD = fileURLToPath(new URL('../..', import.meta.url));

/** When a migration was compiled last: what was made before is of another schema. */
export function migratedAt(): number {
    const folder = join(BUILD, 'adapters', 'postgres', 'migrations');
    return Math.max(...readdirSync(folder).map((name) => Math.trunc(statSync(join(folder, name)).mtimeMs)));
}

/** A database of a test's own. `MIGRATED_DATABASE` names the one to copy, to which nobody is connected; without it this one is migrated. */
export async function migratedDatabase(): Promise<TestDatabase> {
    const template = process.env.MIGRATED_DATABASE;
    return template === undefined ? await newlyMigrated() : await testDatabase(template);
}

/** A pool on such a database, which the test drops at its end. */
export async function migratedPool(t: Test, options: Omit<pg.PoolConfig, 'connectionString'>): Promise<pg.Pool> {
    const { url, drop } = await migratedDatabase();
    const pool = new pg.Pool({ ...options, connectionString: url });
    // The pool has ended before its connections have; the drop may still meet one of them.
    pool.on('error', () => {});
    t.teardown(async () => {
        await pool.end();
        await drop();
    });
    return pool;
}

/** A database like those of {@link testDatabase}, migrated by a connection that has ended. */
export async function newlyMigrated(server?: string): Promise<TestDatabase> {
    const database = await testDatabase('template1', server);
    const pool = new pg.Pool({ connectionString: database.url, max: 2 });
    try {
        await migrate(pool);
        return database;
    } catch (error) {
        await database.drop();
        throw error;
    } finally {
        await pool.end();
    }
}

/** An embedded database in memory, out of the archive that the first test to need it makes. */
export async function migratedMemory(): Promise<EmbeddedDatabase> {
    const template = join(BUILD, `migrated-${migratedAt()}.tar.br`);
    if (!existsSync(template)) {
        const part = `${template}.${process.pid}`;
        writeFileSync(part, await migratedArchive());
        // Others may make it at the same time: each is whole, and as good as the other.
        renameSync(part, template);
    }

    return await embeddedPool(await startDatabaseThread({ dataDir: null, template }));
}

async function migratedArchive(): Promise<Buffer> {
    const folder = mkdtempSync(join(tmpdir(), 'scanwire-migrated-'));
    try {
        const database = await openEmbeddedDatabase({ folder });
        await migrate(database).finally(() => database.end());
        const whole = await PGlite.create(join(folder, 'database'));
        const tar = await whole.dumpDataDir('none').finally(() => whole.close());
        return brotliCompressSync(await tar.arrayBuffer(), { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
    } finally {
        rmSync(folder, { recursive: true });
    }
}
