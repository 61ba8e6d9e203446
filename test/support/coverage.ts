import { readdirSync, readFileSync } from 'node:fs';
import { join, relative } from 'node:path';

/** Where tap looks for what processes have reached, one file each, when it writes its report. */
export const GATHERED = '.tap/coverage';

/** Where tap leaves what its reporter `json` writes. */
const REPORT = '.tap/report/coverage-final.json';

/** Least share of the lines of each folder that tests must run, in percent. Raise it when more is reached; it is never lowered. */
const LEAST: Readonly<Record<string, number>> = { lib: 99.8, plugins: 99.8, adapters: 99.8, cli: 90 };

interface FileCoverage {
    readonly statementMap: Readonly<Record<string, { readonly start: { readonly line: number } }>>;
    /** How often each statement ran. The report has one statement for each line. */
    readonly s: Readonly<Record<string, number>>;
}

export interface Coverage {
    /** A line for each folder, with the lines of it that no test ran. */
    readonly text: string;
    readonly enough: boolean;
}

/** Run by the build alone. */
const NOT_TESTED: readonly string[] = ['adapters/pglite/make-template.ts'];

/** What the tests of the last run of tap reached in the sources. A file that none of them has loaded is in no report, and is too little. */
export function coverage(report: string = REPORT): Coverage {
    const files = Object.entries(JSON.parse(readFileSync(report, 'utf8')) as Record<string, FileCoverage>);
    const reported = files.map(([path, file]) => [relative('.', path), file] as const);
    const folders = Object.entries(LEAST).map(([folder, least]) => {
        const inside = reported.filter(([path]) => path.startsWith(`${folder}/`));
        const known = new Set([...NOT_TESTED, ...inside.map(([path]) => path)]);
        const unloaded = filesThatRun(folder).filter((path) => !known.has(path));
        return folderCoverage({ folder, least, unloaded }, inside);
    });
    return { text: folders.map(({ text }) => text).join('\n'), enough: folders.every(({ enough }) => enough) };
}

/** The sources in a folder of which something is left once they are compiled. */
export function filesThatRun(folder: string): readonly string[] {
    return readdirSync(folder, { encoding: 'utf8', recursive: true })
        .map((name) => join(folder, name))
        .filter((path) => path.endsWith('.ts') && codeOf(join('build', path.replace(/\.ts$/, '.js'))) !== 'export {};');
}

function codeOf(path: string): string {
    const lines = readFileSync(path, 'utf8').split('\n');
    return lines.filter((line) => !/^\s*(?:\/\/|\/?\*|$)/.test(line)).join('\n');
}

interface Wanted {
    readonly folder: string;
    readonly least: number;
    readonly unloaded: readonly string[];
}

function folderCoverage({ folder, least, unloaded }: Wanted, files: readonly (readonly [path: string, file: FileCoverage])[]): Coverage {
    const lines = files.reduce((sum, [, { s }]) => sum + Object.keys(s).length, 0);
    const missed = files.map(([path, file]) => [path, missedLines(file)] as const).filter(([, numbers]) => numbers.length > 0);
    const reached = 100 - (100 * missed.reduce((sum, [, numbers]) => sum + numbers.length, 0)) / Math.max(1, lines);
    const enough = reached >= least && unloaded.length === 0;
    const head = `${enough ? 'ok' : 'not ok'} - ${folder}: ${reached.toFixed(2)} % of ${lines} lines, at least ${least} %`;
    const shown = [...unloaded.map((path) => `${path}: not loaded`), ...missed.map(([path, numbers]) => `${path}: ${ranges(numbers)}`)];
    return { text: [head, ...shown.map((line) => `    ${line}`)].join('\n'), enough };
}

function missedLines({ statementMap, s }: FileCoverage): number[] {
    return Object.entries(s)
        .filter(([, count]) => count === 0)
        .map(([id]) => statementMap[id]?.start.line ?? 0);
}

/** `3-5, 9` for 3, 4, 5, 9. */
function ranges(numbers: readonly number[]): string {
    const found: [first: number, last: number][] = [];
    for (const number of numbers) {
        const current = found.at(-1);
        if (current !== undefined && current[1] === number - 1) {
            current[1] = number;
        } else {
            found.push([number, number]);
        }
    }

    return found.map(([first, last]) => (first === last ? `${first}` : `${first}-${last}`)).join(', ');
}
