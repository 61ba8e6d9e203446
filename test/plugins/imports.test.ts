import { readFile } from 'node:fs/promises';
import t from 'tap';

/** Every package that a compiled module reaches, through whatever modules of ours. */
async function packagesOf(module: URL, seen: Set<string> = new Set()): Promise<Set<string>> {
    const packages = new Set<string>();
    if (seen.has(module.href)) {
        return packages;
    }

    seen.add(module.href);
    const text = await readFile(module, 'utf8');
    for (const [, specifier = ''] of text.matchAll(/(?<![./\w])(?:from|import) ?\(?'([^']+)'/g)) {
        if (specifier.startsWith('.')) {
            for (const name of await packagesOf(new URL(specifier, module), seen)) {
                packages.add(name);
            }
        } else if (!specifier.startsWith('node:')) {
            packages.add(specifier);
        }
    }

    return packages;
}

for (const [name, expected] of [
    ['token-auth', ['@hapi/boom', 'joi']],
    // rate-limiter-flexible comes with an option that asks for it.
    ['rest-api-v2', ['@hapi/boom', 'ipaddr.js', 'joi', 'rate-limiter-flexible']],
    // saxes comes with the first import of a scan, liquidjs with the pages.
    ['admin-console', ['@hapi/boom', 'ipaddr.js', 'joi', 'liquidjs', 'saxes']],
] as const) {
    t.test(`${name} loads no queue, no database driver and no HTTP client`, async (t) => {
        const packages = await packagesOf(new URL(`../../plugins/${name}/index.js`, import.meta.url));

        t.strictSame([...packages].sort(), expected);
    });
}
