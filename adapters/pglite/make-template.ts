/** Makes the template, unless it is there: a step of the build, run as `node dist/adapters/pglite/make-template.js`. */
import { rename, writeFile } from 'node:fs/promises';
import { PGlite } from '@electric-sql/pglite';
import { findTemplate, TEMPLATE } from './template.ts';

if (findTemplate() === null) {
    const database = await PGlite.create();
    await database.exec('checkpoint');
    const archive = await database.dumpDataDir('gzip');
    await database.close();

    const part = `${TEMPLATE}.${process.pid}`;
    await writeFile(part, Buffer.from(await archive.arrayBuffer()));
    await rename(part, TEMPLATE);
}
