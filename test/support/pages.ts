import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { run as runProgram } from './packed.ts';

/**
 * Of every page the files that its blocks of a language are pasted into, by `page/file.js`: a block whose first line names a file, and those after it, go
 * into that file.
 */
export function pastedPages(language: 'js' | 'ts' = 'js'): ReadonlyMap<string, string> {
    const blocks = { js: /^```js\n(.*?)^```$/gms, ts: /^```ts\n(.*?)^```$/gms }[language];
    const files = new Map<string, string>();
    for (const page of ['README.md', ...readdirSync('docs').map((name) => `docs/${name}`)].filter((name) => name.endsWith('.md'))) {
        let file = `page.${language}`;
        for (const [, block = ''] of readFileSync(page, 'utf8').matchAll(blocks)) {
            file = /^\/\/ (\S+\.[jt]s)\n/.exec(block)?.[1] ?? file;
            const name = `${basename(page, '.md')}/${file}`;
            files.set(name, `${files.get(name) ?? ''}${block}\n`);
        }
    }
    return files;
}

/** What every page says to type into a shell, block by block, by `page.md`. */
export function shellBlocks(): ReadonlyMap<string, readonly string[]> {
    const pages = ['README.md', ...readdirSync('docs').map((name) => `docs/${name}`)].filter((name) => name.endsWith('.md'));
    const blocks = pages.map((page) => {
        return [
            basename(page),
            Array.from(readFileSync(page, 'utf8').matchAll(/^```sh\n(.*?)^```$/gms), ([, block = '']) => block),
        ] as const;
    });
    return new Map(blocks.filter(([, all]) => all.length > 0));
}

/** How a page is run. */
export interface PageRun {
    /** What the page presumes of the host that it is pasted into, by name. */
    readonly given?: Readonly<Record<string, unknown>>;
    /** Names of the page's own that are looked at afterwards. */
    readonly gives?: readonly string[];
    /** What only whoever runs it knows, such as an address or a path, in place of what the page has: each must be there. */
    readonly with?: Readonly<Record<string, string>>;
}

/** Where `import 'scanwire/…'` finds the built package, as it does for whoever installed it. */
const FOLDER = 'build/run-pages';

/**
 * The page as a module that finds what it presumes.
 *
 * @throws Error for a page without what is to be replaced: it has been rewritten, and its run has to be.
 */
export function writePage(name: string, { given = {}, gives = [], with: replaced = {} }: PageRun = {}): string {
    const page = pastedPages().get(name);
    if (page === undefined) {
        throw new Error(`There is no ${name}`);
    }

    const source = Object.entries(replaced).reduce((text, [theirs, ours]) => {
        if (!text.includes(theirs)) {
            throw new Error(`${name} has no ${theirs} any more`);
        }

        return text.replaceAll(theirs, ours);
    }, page);
    const path = join(FOLDER, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(
        path,
        `const { ${Object.keys(given).join(', ')} } = globalThis.presumed ?? {};\n${source}\nexport { ${gives.join(', ')} };\n`,
    );
    return path;
}

/** Installs packages of others where a page finds them, and no other module does. */
export async function installFor(name: string, ...packages: readonly string[]): Promise<void> {
    const cwd = join(FOLDER, dirname(name));
    mkdirSync(cwd, { recursive: true });
    writeFileSync(join(cwd, 'package.json'), '{"private":true,"type":"module"}');
    await runProgram('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', '--no-save', ...packages], { cwd });
    // Beside one of its own the page would not find the built package.
    rmSync(join(cwd, 'package.json'));
}

/** Names of the pages that this process has run. */
export const ranPages: Set<string> = new Set();

/** Runs the page in this process, and answers with those names of its own that the run asks for. */
// biome-ignore lint/suspicious/noExplicitAny: pages are in JavaScript
export async function runPage(name: string, run: PageRun = {}): Promise<any> {
    const path = writePage(name, run);
    ranPages.add(name);
    Object.assign(globalThis, { presumed: run.given });
    const { log, error } = console;
    // What pages print is for people, not for those who read what tests say.
    Object.assign(console, { log() {}, error() {} });
    try {
        return await import(pathToFileURL(path).href);
    } finally {
        Object.assign(console, { log, error });
    }
}
