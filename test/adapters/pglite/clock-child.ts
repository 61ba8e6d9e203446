/*
 * Prints, as JSON, how far the embedded database's clock and the process's own move while the latter is set by CLOCK_OFFSET, and the database is let
 * look at it. Milliseconds.
 */
import { writeFileSync } from 'node:fs';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';

const ticks: [task: () => void, milliseconds: number][] = [];
const pool = await openEmbeddedDatabase({
    folder: process.env.DATABASE_FOLDER ?? '',
    ticker(...tick) {
        ticks.push(tick);
        return () => undefined;
    },
});
const databaseTime = async (): Promise<number> => {
    const { rows } = await pool.query<{ now: Date }>('select clock_timestamp() as now');
    return Number(rows[0]?.now);
};

const warnings: string[] = [];
process.on('warning', ({ message }) => warnings.push(message));
const before = { database: await databaseTime(), process: Date.now() };
// Written elsewhere and renamed would be whole at once; nobody reads it before it is.
writeFileSync(process.env.CLOCK_FILE ?? '', process.env.CLOCK_OFFSET ?? '0');
const unseen = await databaseTime();
for (const [task] of ticks.filter(([, milliseconds]) => milliseconds === 60_000)) {
    task();
}
const after = { database: await databaseTime(), process: Date.now() };
await pool.end();
const anchoredAt = before.database - before.process;
const moved = {
    anchoredAt,
    unseen: unseen - before.database,
    database: after.database - before.database,
    process: after.process - before.process,
};
process.stdout.write(JSON.stringify({ ...moved, warnings }));
