/*
 * Runs compiled test files one after the other: those of `TEST_FILES`, a line each. They are no arguments, since tap names the folders of tests
 * after those; the only one tells this process from others of its kind. `FOLDER_OF_TESTS` is where those folders are, if not where tap has them.
 */
import { resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import t, { type Base, TestBase } from 'tap';

/**
 * tap follows every promise, timer and socket of a test by async hooks, to name the test beside which something is thrown that nobody waits for. They
 * take a sixth of the time of most tests, and half of what awaits much. Without them Node ends the process, which fails all the same, with the stack.
 */
function unfollowed(test: Base): void {
    test.hookDomain.destroy();
    if (test instanceof TestBase) {
        test.on('subtestAdd', unfollowed);
    }
}

unfollowed(t);
// With what it prints, tap begins to follow what is beside all tests as well.
t.pipe(process.stdout);
t.hook.onDestroy?.();

const folder = process.env.FOLDER_OF_TESTS;
if (folder !== undefined) {
    t.testdirName = resolve(folder, process.argv[2] ?? '');
}

const files = (process.env.TEST_FILES ?? '').split('\n');
// What is set by then is what one file may take.
t.setTimeout(Number(process.env.TAP_TIMEOUT) * 1000 * files.length);

for (const file of files) {
    await import(pathToFileURL(resolve(file)).href);
}
