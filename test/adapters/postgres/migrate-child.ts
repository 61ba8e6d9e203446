import pg from 'pg';
import { migrate } from '../../../adapters/postgres/index.ts';

const pool = new pg.Pool({ connectionString: process.argv[2] ?? '' });
process.stdout.write(JSON.stringify(await migrate(pool)));
await pool.end();
