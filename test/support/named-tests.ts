import { existsSync, readdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';

/** What is to be run, and how. */
export interface NamedTests {
    /** Paths of compiled test files, one at least. */
    readonly compiled: readonly string[];
    /** Whether the first failure ends the run. */
    readonly bails: boolean;
    /** What goes on to `test-files.ts`. */
    readonly options: readonly string[];
}

/**
 * What the arguments of `npm test` name; all tests where they name none.
 *
 * @throws TypeError for an unknown option. @throws Error for a folder without tests: a run of none would pass.
 */
export function testFiles(args: readonly string[]): NamedTests {
    const { values, positionals } = parseArgs({
        args: [...args],
        allowPositionals: true,
        options: { bail: { type: 'boolean', default: false }, jobs: { type: 'string' } },
    });
    const compiled = (positionals.length === 0 ? ['test'] : positionals).flatMap(compiledAt);
    return { compiled, bails: values.bail, options: values.jobs === undefined ? [] : ['--jobs', values.jobs] };
}

/** A test may be named as it is written: `test/lib/x.test.ts` for `build/test/lib/x.test.js`; a folder stands for all in it. */
function compiledAt(argument: string): readonly string[] {
    const [, path, extension] = /^(?:\.\/)?(test(?:\/.*?)?)\/?(\.ts)?$/.exec(argument) ?? [];
    if (path === undefined) {
        return [argument];
    }

    const built = join('build', path);
    if (extension !== undefined || !existsSync(built)) {
        return [`${built}.js`];
    }

    const found = readdirSync(built, { encoding: 'utf8', recursive: true })
        .filter((name) => name.endsWith('.test.js'))
        .sort()
        .map((name) => join(built, name));
    if (found.length === 0) {
        throw new Error(`There is no test in ${argument}`);
    }
    return found;
}
