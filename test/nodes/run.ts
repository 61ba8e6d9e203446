/*
 * `npm run nodes`: what `docs/embedding.md` leads to, from the packed package, on every line of Node.js that the package admits. Ends with
 * 1 when one of them does not fit. `-- 22 24.1.0` tries these.
 */
import { pastedProject } from '../support/embedding-page.ts';
import { packed, run } from '../support/packed.ts';
import { testServers } from '../support/servers.ts';
import { fetchedNode, NODES, runPageOn, writeForms } from './nodes.ts';

const given = process.argv.slice(2);
const servers = await testServers();
Object.assign(process.env, servers.env);
const { folder, remove } = await packed();
let failed = 0;
try {
    // Installed once: nothing of it is made for one Node.js.
    const project = await pastedProject(folder);
    await writeForms(project);
    for (const version of given.length > 0 ? given : NODES) {
        const startedAt = performance.now();
        try {
            const node = await fetchedNode(version, folder);
            const { stdout } = await run(node, ['--version']);
            await runPageOn(node, project);
            process.stdout.write(`ok   ${stdout.trim()}, ${((performance.now() - startedAt) / 1000).toFixed(0)} s\n`);
        } catch (error) {
            failed += 1;
            process.stdout.write(`FAIL Node.js ${version}: ${(error as Error).message}\n`);
        }
    }
} finally {
    remove();
    await servers.stop();
}

process.exitCode = failed === 0 ? 0 : 1;
