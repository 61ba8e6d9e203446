import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { run } from './packed.ts';
import { pastedPages } from './pages.ts';
import { testDatabase } from './test-database.ts';

/** The blocks of `docs/embedding.md`, pasted one below the other into the files that their first lines name. */
export function pastedPage(): ReadonlyMap<string, string> {
    const [page, files] = ['embedding/', [...pastedPages()]];
    return new Map(files.filter(([name]) => name.startsWith(page)).map(([name, source]) => [name.slice(page.length), source]));
}

/** What somebody who writes TypeScript adds: the types of what has none in JavaScript. */
const ANNOTATIONS: readonly (readonly [string, string])[] = [
    ['function* found()', "function* found(): AsyncGenerator<import('scanwire/inventory').HostInput>"],
    ['addFinding(title)', 'addFinding(title: string)'],
    ['addFinding(payload?.title)', "addFinding((payload as { title?: string } | null)?.title ?? '')"],
    ['let secret;', 'let secret: string;'],
    ['console.log(error.message)', 'console.log((error as Error).message)'],
    ['receiver.address().port', "(receiver.address() as import('node:net').AddressInfo).port"],
];

/** A project that has a server already, with the packed package of this folder installed into it and the page pasted below that. */
export async function pastedProject(folder: string): Promise<string> {
    const project = join(folder, 'existing');
    mkdirSync(project);
    const dependencies = { '@hapi/hapi': '^21.0.0', pg: '^8.0.0' };
    writeFileSync(join(project, 'package.json'), JSON.stringify({ private: true, type: 'module', dependencies }));
    for (const [file, source] of pastedPage()) {
        writeFileSync(join(project, file), source);
    }

    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', join('..', 'scanwire.tgz')], { cwd: project });
    return project;
}

/** Writes the server of the page as a CommonJS module, as a host has it whose package says nothing of modules. */
export function writeCommonJs(project: string): void {
    const required = (pastedPage().get('server.js') ?? '').replaceAll(
        /^import (.+) from ('.+');$/gm,
        (_, names: string, module: string) => `const ${names.replaceAll(' as ', ': ')} = require(${module});`,
    );
    writeFileSync(join(project, 'server.cjs'), `'use strict';\n(async () => {\n${required}})();\n`);
}

/**
 * Writes the page in TypeScript, checks its types and compiles it into `typed/`.
 *
 * @throws Error with what the compiler says.
 */
export async function compileTyped(project: string): Promise<void> {
    const own = resolve('node_modules');
    symlinkSync(join(own, '@types'), join(project, 'node_modules', '@types'));
    const files = pastedPage();
    for (const [file, source] of files) {
        writeFileSync(join(project, file.replace('.js', '.ts')), `export {};\n${file === 'server.js' ? annotated(source) : source}`);
    }

    const options = ['--strict', '--skipLibCheck', '--module', 'nodenext', '--target', 'es2023', '--types', 'node', '--outDir', 'typed'];
    const sources = Array.from(files.keys(), (file) => file.replace('.js', '.ts'));
    await run(join(own, '.bin', 'tsc'), [...options, ...sources], { cwd: project }).catch(({ stdout }: { stdout: string }) => {
        throw new Error(stdout);
    });
}

function annotated(source: string): string {
    return ANNOTATIONS.reduce((text, [plain, typed]) => {
        if (!text.includes(plain)) {
            throw new Error(`The page has no ${plain} any more`);
        }

        return text.replaceAll(plain, typed);
    }, source);
}

/** What a program of the page needs around it, and a way to end that. */
async function surroundings(): Promise<{ readonly env: NodeJS.ProcessEnv; drop(): Promise<void> }> {
    const { url: DATABASE_URL, drop } = await testDatabase();
    const SEALING_KEY = randomBytes(32).toString('base64');
    return { env: { ...process.env, DATABASE_URL, SEALING_KEY, PORT: '0', NODE_OPTIONS: '' }, drop };
}

/** What a program of the page prints up to its first delivery. `use` is called while it runs on. */
export async function printedBy(
    project: string,
    program: string,
    { node = process.execPath, use = async () => {} }: { readonly node?: string; use?(lines: readonly string[]): Promise<void> } = {},
): Promise<readonly string[]> {
    const { env, drop } = await surroundings();
    const server = spawn(node, [program], { cwd: project, env, stdio: ['ignore', 'pipe', 'inherit'] });
    try {
        const lines: string[] = [];
        for await (const line of createInterface(server.stdout)) {
            lines.push(line);
            if (line.startsWith('idr_investigation_created')) {
                break;
            }
        }
        await use(lines);
        return lines;
    } finally {
        const exited = server.exitCode === null ? once(server, 'exit') : null;
        server.kill('SIGKILL');
        await exited;
        await drop();
    }
}

/** How a program of the page ends by itself: exit code and signal. */
export async function endOf(project: string, program: string): Promise<readonly unknown[]> {
    const { env, drop } = await surroundings();
    const server = spawn(process.execPath, [program], { cwd: project, env, stdio: ['ignore', 'ignore', 'inherit'] });
    try {
        return await once(server, 'exit');
    } finally {
        server.kill('SIGKILL');
        await drop();
    }
}

/** What a program of the page prints behind the address of its server, when all is well. */
export const DELIVERED: readonly string[] = ['test: verified', 'idr_investigation_created: verified'];
