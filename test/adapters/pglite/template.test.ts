import { existsSync, statSync } from 'node:fs';
import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import t from 'tap';
import { unpackTemplate } from '../../../adapters/pglite/template.ts';

t.test('unpacks an archive as PGlite makes it into a folder that PGlite opens', async (t) => {
    const made = await PGlite.create();
    await made.exec('create table kept as select 42 as answer; checkpoint');
    const archive = join(t.testdir({}), 'template.tar.gz');
    await writeFile(archive, Buffer.from(await (await made.dumpDataDir('gzip')).arrayBuffer()));
    await made.close();

    const folder = join(t.testdirName, 'database');
    await unpackTemplate(archive, folder);
    t.equal(statSync(folder).mode & 0o777, 0o700);
    t.equal(statSync(join(folder, 'PG_VERSION')).mode & 0o777, 0o600);
    t.ok(existsSync(join(folder, 'pg_notify')));

    const database = await PGlite.create(folder);
    t.same((await database.query('select answer from kept')).rows, [{ answer: 42 }]);
    await database.close();
});

t.test('leaves a folder alone that is there already', async (t) => {
    const folder = t.testdir({ 'template.tar.gz': gzipSync(''), database: {} });
    await t.rejects(unpackTemplate(join(folder, 'template.tar.gz'), join(folder, 'database')), { code: 'EEXIST' });
});
