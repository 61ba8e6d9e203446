import { spawnSync } from 'node:child_process';
import { copyFileSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import t from 'tap';

const biome = resolve('node_modules/.bin/biome');

interface Linted {
    readonly status: number | null;
    readonly output: string;
}

/** Lints one file in a folder that has nothing but the project's rules. */
function lint(folder: string, file: string, imported: string): Linted {
    copyFileSync('biome.json', join(folder, 'biome.json'));
    copyFileSync('package.json', join(folder, 'package.json'));
    copyFileSync('.gitignore', join(folder, '.gitignore'));
    mkdirSync(join(folder, dirname(file)), { recursive: true });
    writeFileSync(join(folder, file), `export { x } from '${imported}';\n`);
    const { status, stdout, stderr } = spawnSync(biome, ['lint', file], { cwd: folder, encoding: 'utf8' });
    return { status, output: stdout + stderr };
}

for (const [file, imported] of [
    ['lib/keys/x.ts', '../../plugins/token-auth/index.ts'],
    ['lib/keys/x.ts', '../../adapters/memory/index.ts'],
    ['lib/x.ts', '../cli/scanwire.ts'],
    ['plugins/token-auth/x.ts', '../../adapters/memory/index.ts'],
    ['plugins/token-auth/x.ts', '../../cli/scanwire.ts'],
    ['adapters/memory/x.ts', '../../plugins/token-auth/index.ts'],
    ['adapters/memory/x.ts', '../../cli/scanwire.ts'],
    ['examples/existing-server/x.js', '../../lib/keys/index.ts'],
    ['examples/existing-server/x.js', '../../dist/plugins/token-auth/index.js'],
] as const) {
    t.test(`refuses ${imported} in ${file}`, (t) => {
        const { status, output } = lint(t.testdir(), file, imported);
        t.not(status, 0);
        t.match(output, /noRestrictedImports/);
        t.end();
    });
}

for (const [file, imported] of [
    ['lib/keys/x.ts', '../schema-validation.ts'],
    ['plugins/token-auth/x.ts', '../../lib/schema-validation.ts'],
    ['adapters/memory/x.ts', '../../lib/schema-validation.ts'],
    ['cli/x.ts', '../adapters/memory/index.ts'],
    ['examples/existing-server/x.js', 'scanwire/token-auth'],
    ['examples/existing-server/x.js', './inventory.js'],
] as const) {
    t.test(`allows ${imported} in ${file}`, (t) => {
        const { status, output } = lint(t.testdir(), file, imported);
        t.equal(status, 0, output);
        t.end();
    });
}
