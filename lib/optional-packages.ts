/** Packages that are loaded only where they are used: whether they are there, and new enough. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { codeNote, errorCode, ScanwireError } from './errors.ts';
import { processWarning } from './process-warning.ts';

/** Which versions of a package that the host brings have been tried. */
export interface Tried {
    /** The oldest that works. */
    readonly from: string;
    /** The newest major version. What is newer may work. */
    readonly to: number;
    /** A module that every version has. */
    readonly module: string;
}

/**
 * The optional peers. `package.json` takes every version of them: npm would refuse the whole package to a host that has another version for
 * purposes of its own, although nothing of ours uses it there.
 */
export const TRIED: ReadonlyMap<string, Tried> = new Map([
    ['@modelcontextprotocol/sdk', { from: '1.25.0', to: 1, module: '@modelcontextprotocol/sdk/server/index.js' }],
    ['@opentelemetry/api', { from: '1.0.0', to: 1, module: '@opentelemetry/api' }],
    ['@picocss/pico', { from: '2.0.0', to: 2, module: '@picocss/pico/package.json' }],
    ['htmx.org', { from: '4.0.0', to: 4, module: 'htmx.org/package.json' }],
    ['prom-client', { from: '13.0.0', to: 15, module: 'prom-client' }],
    ['rate-limiter-flexible', { from: '1.0.1', to: 11, module: 'rate-limiter-flexible' }],
    ['swagger-ui-dist', { from: '5.0.0', to: 5, module: 'swagger-ui-dist/package.json' }],
]);

/**
 * A module of an optional package, which `npm install --omit=optional` leaves out or which the host brings.
 *
 * @param load Imports it.
 * @param use What it is needed for.
 * @throws ScanwireError `MISCONFIGURED` with the line that installs it, or a version that works.
 */
export async function optionalPackage<Module>(name: string, use: string, load: () => Promise<Module>): Promise<Module> {
    assertNewEnough(name, use);
    try {
        return await load();
    } catch (cause) {
        throw withoutPackage(name, use, cause);
    }
}

/**
 * What keeps one of the {@link TRIED} packages from being used: it is missing or too old. Null when nothing does.
 *
 * @param use What it is needed for.
 */
export function packageProblem(name: string, use: string): ScanwireError | null {
    try {
        import.meta.resolve(TRIED.get(name)?.module ?? name);
        assertNewEnough(name, use);
        return null;
    } catch (error) {
        return error instanceof ScanwireError ? error : withoutPackage(name, use, error);
    }
}

/** Whether one of the {@link TRIED} packages can be used. Of one that is too old the process warns: somebody has installed it. */
export function isUsable(name: string, use: string): boolean {
    const problem = packageProblem(name, use);
    if (problem !== null && problem.cause === undefined) {
        processWarning(problem.message);
    }
    return problem === null;
}

/** What {@link optionalPackage} throws of one that cannot be loaded. */
export function withoutPackage(name: string, use: string, cause: unknown): ScanwireError {
    const message =
        errorCode(cause) === 'ERR_MODULE_NOT_FOUND'
            ? `${use} needs the package ${name}: ${installing(name)}`
            : `Cannot load ${name} for ${use}${codeNote(cause)}`;
    return new ScanwireError('MISCONFIGURED', message, { cause });
}

/** Those that nothing is to be said of any more: a package stays what it is for as long as the process lasts. */
const looked = new Set<string>();

/** @throws ScanwireError `MISCONFIGURED` with the version that is there, the one that is needed and the line that installs it. */
export function assertNewEnough(name: string, use: string): void {
    const tried = TRIED.get(name);
    const version = tried === undefined || looked.has(name) ? null : versionOf(tried.module);
    if (tried === undefined || version === null) {
        return;
    }

    if (isOlder(version, tried.from)) {
        const message = `${use} needs the package ${name} from ${tried.from} on, and ${version} is installed: ${installing(name)}`;
        throw new ScanwireError('MISCONFIGURED', message);
    }

    looked.add(name);
    if ((numbersOf(version)[0] ?? 0) > tried.to) {
        processWarning(`${use} was never tried with ${name} ${version}; a version that was: ${installing(name)}`);
    }
}

/** The line that installs it, in a version that was tried. */
function installing(name: string): string {
    const tried = TRIED.get(name);
    return `npm install ${name}${tried === undefined ? '' : `@${tried.to}`}`;
}

/** The version of an installed package; null where it cannot be told, as in a bundle or of a package that is not there. */
function versionOf(module: string): string | null {
    let folder: string;
    try {
        folder = dirname(fileURLToPath(import.meta.resolve(module)));
    } catch {
        // Whoever loads it says why it cannot.
        return null;
    }

    // Its `exports` may hide its package.json, and some have further ones without a name below.
    for (; folder !== dirname(folder); folder = dirname(folder)) {
        const file = join(folder, 'package.json');
        const { name, version } = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as Record<string, unknown>) : {};
        if (typeof name === 'string') {
            return typeof version === 'string' ? version : null;
        }
    }
    return null;
}

function isOlder(version: string, than: string): boolean {
    const [found, wanted] = [numbersOf(version), numbersOf(than)];
    const index = wanted.findIndex((number, at) => number !== found[at]);
    return index >= 0 && (found[index] ?? 0) < (wanted[index] ?? 0);
}

/** Major, minor and patch. */
function numbersOf(version: string): readonly number[] {
    return version.split(/[.+-]/, 3).map(Number);
}
