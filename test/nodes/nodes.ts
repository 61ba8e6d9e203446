import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { compileTyped, DELIVERED, printedBy, writeCommonJs } from '../support/embedding-page.ts';
import { run } from '../support/packed.ts';

/** The oldest that `package.json` admits, and the newest of each line since then. */
export const NODES: readonly string[] = ['20.19.0', '22', '24', '26'];

/**
 * Fetches a Node.js of its own below the folder, from the registry, and nothing into the machine. The path of its program: the rest of the package is
 * not unpacked.
 */
export async function fetchedNode(version: string, folder: string): Promise<string> {
    const home = join(folder, `node-${version}`);
    mkdirSync(home);
    // The package `node` would fetch this one by a script.
    const name = `node-${process.platform}-${process.arch}@${version}`;
    const { stdout } = await run('npm', ['pack', '--silent', '--prefer-offline', name], { cwd: home });
    await run('tar', ['xzf', stdout.trim(), 'package/bin/node'], { cwd: home });
    return join(home, 'package', 'bin', 'node');
}

/** Writes what the embedding page leads to, besides what it is: the same in CommonJS and in TypeScript. */
export async function writeForms(project: string): Promise<void> {
    writeCommonJs(project);
    await compileTyped(project);
}

/**
 * Runs what is pasted into a project in its three forms, and the test of the page.
 *
 * @throws Error that says what came instead of the deliveries.
 */
export async function runPageOn(node: string, project: string): Promise<void> {
    for (const program of ['server.js', 'server.cjs', join('typed', 'server.js')]) {
        const said = (await printedBy(project, program, { node })).slice(1);
        if (said.join() !== DELIVERED.join()) {
            throw new Error(`${program} said: ${said.join(', ')}`);
        }
    }
    await run(node, ['--test', 'finding.test.js'], { cwd: project });
}
