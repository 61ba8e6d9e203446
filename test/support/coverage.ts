import { readFileSync } from 'node:fs';
import { relative } from 'node:path';

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

/** What the tests of the last run of tap reached in the sources. */
export function coverage(): Coverage {
    const files = Object.entries(JSON.parse(readFileSync(REPORT, 'utf8')) as Record<string, FileCoverage>);
    const folders = Object.entries(LEAST).map(([folder, least]) => {
        const inside = files.map(([path, file]) => [relative('.', path), file] as const).filter(([path]) => path.startsWith(`${folder}/`));
        return folderCoverage(folder, least, inside);
    });
    return { text: folders.map(({ text }) => text).join('\n'), enough: folders.every(({ enough }) => enough) };
}

function folderCoverage(folder: string, least: number, files: readonly (readonly [path: string, file: FileCoverage])[]): Coverage {
    const lines = files.reduce((sum, [, { s }]) => sum + Object.keys(s).length, 0);
    const missed = files.map(([path, file]) => [path, missedLines(file)] as const).filter(([, numbers]) => numbers.length > 0);
    const reached = 100 - (100 * missed.reduce((sum, [, numbers]) => sum + numbers.length, 0)) / Math.max(1, lines);
    const enough = reached >= least;
    const head = `${enough ? 'ok' : 'not ok'} - ${folder}: ${reached.toFixed(2)} % of ${lines} lines, at least ${least} %`;
    return { text: [head, ...missed.map(([path, numbers]) => `    ${path}: ${ranges(numbers)}`)].join('\n'), enough };
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
