import { copyFileSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { TRIED, type Tried } from '../../lib/optional-packages.ts';
import { run } from '../support/packed.ts';

/** A host's own versions: of hapi, of joi (`none` for a host that has none), of other packages, and whether its types are checked. */
export interface Peers {
    readonly hapi: string;
    readonly joi: string;
    /** By name; `latest` is the newest that the registry has. */
    readonly others: Readonly<Record<string, string>>;
    readonly types: boolean;
}

/** The optional peers. */
export type Others = Peers['others'];

const named = (version: (name: string, tried: Tried) => string): Others =>
    Object.fromEntries([...TRIED].map(([name, tried]) => [name, version(name, tried)]));

/** The newest ones of those that were tried. */
export const NEWEST: Others = named((_, { to }) => `^${to}`);

/** The oldest ones that work. */
export const OLDEST: Others = named((_, { from }) => from);

/** Those of a host that has them for something of its own: for what is ours most are too old. */
export const OWN: Others = {
    '@modelcontextprotocol/sdk': '1.20.0',
    '@opentelemetry/api': '1.8.0',
    '@picocss/pico': '1.5.13',
    'htmx.org': '2.0.4',
    'prom-client': '12.0.0',
    'rate-limiter-flexible': '5.0.5',
    'swagger-ui-dist': '4.19.1',
};

/** The files of the packed package. */
export async function filesIn(folder: string): Promise<readonly string[]> {
    const { stdout } = await run('tar', ['tzf', join(folder, 'scanwire.tgz')]);
    return stdout.split('\n').map((path) => path.replace(/^package\//, ''));
}

/** Where {@link hostWith} has made its project. */
export function projectOf({ hapi, joi, others }: Peers, folder: string): string {
    const name = [`hapi-${hapi}`, `joi-${joi}`, ...Object.entries(others).map((other) => other.join('-'))].join('-');
    return join(folder, name.replaceAll(/[^\w.-]/g, '_').slice(0, 200));
}

/** Runs a program in the project of {@link hostWith}; what it writes to stdout. */
export async function runIn(peers: Peers, folder: string, source: string): Promise<string> {
    const cwd = projectOf(peers, folder);
    writeFileSync(join(cwd, 'program.mjs'), source);
    const { stdout } = await run(process.execPath, ['program.mjs'], { cwd });
    return stdout;
}

/** The ends of what `package.json` admits, the newest ones as the registry has them now. Versions before 21.1 of hapi have no types of their own. */
export const ENDS: readonly Peers[] = [
    { hapi: '21.0.0', joi: 'none', others: OLDEST, types: false },
    { hapi: '21.1.0', joi: '17.13.3', others: OWN, types: true },
    { hapi: '21.3.12', joi: '18.0.0', others: NEWEST, types: true },
    { hapi: 'latest', joi: 'latest', others: {}, types: true },
];

export const MATRIX: readonly Peers[] = ['21.0.0', '21.1.0', '21.3.12', 'latest'].flatMap((hapi) =>
    ['17.13.3', '18.0.0', 'latest', 'none'].map((joi) => ({ hapi, joi, others: NEWEST, types: hapi !== '21.0.0' })),
);

/** What the host of `host.ts` found out. */
export interface Found {
    readonly hapi: string;
    /** `none` of a host that imports none. */
    readonly joi: string;
    readonly status: number;
    readonly row: unknown;
    readonly deliveries: readonly unknown[];
    readonly refused: string;
    /** Why what needs a package cannot be used; null where it can. */
    readonly lacks: Readonly<Record<string, string | null>>;
    /** What routes of each answer. */
    readonly statuses: Readonly<Record<string, number>>;
}

/**
 * Installs the packed package into a new project that has these versions already, as its users do, checks the types of a host there and runs it.
 *
 * @throws Error with the output of what failed; npm refuses versions that the package does not admit.
 */
export async function hostWith(peers: Peers, folder: string): Promise<Found> {
    const { hapi, joi, others, types } = peers;
    const project = projectOf(peers, folder);
    mkdirSync(project);
    const dependencies = { '@hapi/hapi': hapi, ...(joi !== 'none' && { joi }), ...others };
    writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
    await run('npm', ['install', '--omit=optional', '--no-audit', '--no-fund', '--prefer-offline', join('..', 'scanwire.tgz')], {
        cwd: project,
    });
    copyFileSync('test/peers/host.ts', join(project, 'host.ts'));
    copyFileSync('build/test/peers/host.js', join(project, 'host.js'));
    if (types) {
        const own = resolve('node_modules');
        const roots = ['--typeRoots', join(own, '@types'), '--types', 'node'];
        const options = ['--noEmit', '--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', ...roots];
        await run(join(own, '.bin', 'tsc'), [...options, 'host.ts'], { cwd: project }).catch(
            ({ stdout, message }: Error & { stdout: string }) => {
                throw new Error(`${message}\n${stdout}`);
            },
        );
    }

    const { stdout } = await run(process.execPath, ['host.js', joi === 'none' ? 'none' : 'joi'], { cwd: project });
    return JSON.parse(stdout) as Found;
}

interface LockedPackage {
    /** Left out by `--omit=optional`. */
    readonly optional?: boolean;
    readonly dependencies?: Readonly<Record<string, string>>;
}

/** Where a package at `from` finds another one: in its own folder, else in the nearest above it. */
function foundFrom(from: string, name: string, lock: Readonly<Record<string, LockedPackage>>): string | undefined {
    const path = join(from, 'node_modules', name);
    const above = from.slice(0, Math.max(0, from.lastIndexOf('node_modules') - 1));
    return path in lock ? path : from === '' ? undefined : foundFrom(above, name, lock);
}

/** Whether the README says so, to a tenth: the packages of others come in newer versions each week. */
export function readmeSays(sentence: RegExp, measured: number): boolean {
    const [, said] = sentence.exec(readFileSync('README.md', 'utf8')) ?? [];
    return Math.abs(Number(said) - measured) <= measured / 10;
}

/** Bytes of a package's own files. */
function bytesOf(folder: string): number {
    return readdirSync(folder, { withFileTypes: true })
        .filter((entry) => entry.name !== 'node_modules')
        .map((entry) => (entry.isDirectory() ? bytesOf(join(folder, entry.name)) : statSync(join(folder, entry.name)).size))
        .reduce((sum, bytes) => sum + bytes, 0);
}

/** What a project has installed above hapi, joi and what those two need: paths and bytes, the package itself among them, and bytes of what is optional. */
export function installedAbove(project: string): {
    readonly packages: readonly string[];
    readonly bytes: number;
    readonly optionalBytes: number;
} {
    const { packages: lock } = JSON.parse(readFileSync(join(project, 'node_modules', '.package-lock.json'), 'utf8')) as {
        readonly packages: Readonly<Record<string, LockedPackage>>;
    };
    const theirs = new Set(['@hapi/hapi', 'joi'].map((name) => foundFrom('', name, lock) as string));
    for (const path of theirs) {
        for (const name of Object.keys(lock[path]?.dependencies ?? {})) {
            theirs.add(foundFrom(path, name, lock) as string);
        }
    }

    const packages = Object.keys(lock).filter((path) => !theirs.has(path));
    const bytesIn = (paths: readonly string[]): number => paths.reduce((sum, path) => sum + bytesOf(join(project, path)), 0);
    return { packages, bytes: bytesIn(packages), optionalBytes: bytesIn(packages.filter((path) => lock[path]?.optional)) };
}
