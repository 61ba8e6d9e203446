import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { compileTyped, DELIVERED, printedBy, writeCommonJs } from '../support/embedding-page.ts';
import { run } from '../support/packed.ts';

/** The oldest that `package.json` admits, and the newest of each line since then. */
export const NODES: readonly string[] = ['20.19.0', '22', '24', '26'];

/** Installs a Node.js of its own below the folder, from the registry, and nothing into the machine. The path of its program. */
export async function installedNode(version: string, folder: string): Promise<string> {
    const home = join(folder, `node-${version}`);
    mkdirSync(home);
    writeFileSync(join(home, 'package.json'), '{"private":true}');
    // The package `node` would fetch this one by a script, which npm need not run.
    const program = `node-${process.platform}-${process.arch}`;
    await run('npm', ['install', '--no-audit', '--no-fund', '--prefer-offline', `${program}@${version}`], { cwd: home });
    return join(home, 'node_modules', program, 'bin', 'node');
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
