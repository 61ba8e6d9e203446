/*
 * Runs compiled test files one after the other in one process: those of `TEST_FILES`, a line each. They are no arguments, since tap names the
 * folders of tests after those; the only one tells this process from others of its kind.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';

for (const file of (process.env.TEST_FILES ?? '').split('\n')) {
    await import(pathToFileURL(resolve(file)).href);
}
