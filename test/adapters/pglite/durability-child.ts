import { writeSync } from 'node:fs';
import { openEmbeddedDatabase } from '../../../adapters/pglite/index.ts';

const database = await openEmbeddedDatabase({ folder: process.argv[2] ?? '' });
await database.query('create table if not exists acknowledged (n integer primary key, filler text)');
const { rows } = await database.query<{ last: number }>('select coalesce(max(n), 0) as last from acknowledged');
const filler = 'x'.repeat(500);

for (let n = (rows[0]?.last ?? 0) + 1; ; n++) {
    await database.query('insert into acknowledged values ($1, $2)', [n, filler]);
    writeSync(1, `${n}\n`);
}
