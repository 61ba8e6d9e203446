/** Makes the template, unless it is there: a step of the build, run as `node dist/adapters/pglite/make-template.js`. */
import { rename, writeFile } from 'node:fs/promises';
import { promisify } from 'node:util';
import { brotliCompress, constants } from 'node:zlib';
import { PGlite } from '@electric-sql/pglite';
import { findTemplate, TEMPLATE } from './template.ts';

/** PostgreSQL keeps its catalogue in three databases that are alike, further apart than the largest of the usual windows. */
const WINDOW_BITS = 26;

if (findTemplate() === null) {
    const database = await PGlite.create();
    await database.exec('checkpoint');
    const archive = await database.dumpDataDir('none');
    await database.close();

    // A quarter of what gzip comes to. The best quality takes twenty times as long.
    const params = {
        [constants.BROTLI_PARAM_QUALITY]: 9,
        [constants.BROTLI_PARAM_LARGE_WINDOW]: 1,
        [constants.BROTLI_PARAM_LGWIN]: WINDOW_BITS,
    };
    const part = `${TEMPLATE}.${process.pid}`;
    await writeFile(part, await promisify(brotliCompress)(await archive.arrayBuffer(), { params }));
    await rename(part, TEMPLATE);
}
