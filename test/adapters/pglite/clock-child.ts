/* Prints, as JSON, how far the embedded database's clock and the process's own move while the latter is set back. Milliseconds. */
import { writeFileSync } from 'node:fs';
import { openMemoryDatabase } from '../../../adapters/pglite/index.ts';

const pool = await openMemoryDatabase();
const databaseTime = async (): Promise<number> => {
    const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
    return Number(rows[0]?.now);
};

const before = { database: await databaseTime(), process: Date.now() };
writeFileSync(process.env.CLOCK_FILE ?? '', '');
const after = { database: await databaseTime(), process: Date.now() };
await pool.end();
const anchoredAt = before.database - before.process;
process.stdout.write(JSON.stringify({ anchoredAt, database: after.database - before.database, process: after.process - before.process }));
