/*
 * Runs compiled test files one after the other in one process: those of `TEST_FILES`, a line each. They are no arguments, since tap names the
 * folders of tests after those; the only one tells this process from others of its kind.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';

const files = (process.env.TEST_FILES ?? '').split('\n');
// What is set by then is what one file may take.
t.setTimeout(Number(process.env.TAP_TIMEOUT) * 1000 * files.length);

for (const file of files) {
    await import(pathToFileURL(resolve(file)).href);
}
