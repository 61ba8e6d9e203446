import { cp, mkdtemp, readFile, rm, symlink } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

/** A compiled copy of the repository. What is measured of it is its package in `dist/`, through what the package exports. */
export interface Checkout {
    readonly name: string;
    /** The folder of the compiled bench whose `scanwire/*` is the package of this checkout. */
    readonly bench: string;
    /** Path of the program `scanwire`. */
    readonly program: string;
    /** Removes what was made for it. */
    remove(): Promise<void>;
}

const BENCH = fileURLToPath(new URL('.', import.meta.url));
const ROOT = resolve(BENCH, '../..');

export async function ownCheckout(): Promise<Checkout> {
    return { name: 'scanwire', bench: BENCH, program: await programOf(ROOT), remove: async () => {} };
}

/**
 * This checkout and another that is compiled, both measured by this bench and both in the same way: a copy of it gets the package and
 * the dependencies of the checkout beside it, where Node resolves `scanwire/*` and all else, and `lib/` for what no user of the package calls by itself.
 */
export async function ownAndOtherCheckout(other: string): Promise<readonly [own: Checkout, other: Checkout]> {
    return Promise.all([staged(ROOT), staged(resolve(other))]);
}

async function staged(root: string): Promise<Checkout> {
    const program = await programOf(root);
    const folder = await mkdtemp(join(tmpdir(), 'scanwire-bench-'));
    const bench = join(folder, 'bench');
    await cp(BENCH, bench, { recursive: true });
    await cp(join(root, 'package.json'), join(folder, 'package.json'));
    for (const name of ['dist', 'node_modules']) {
        await symlink(join(root, name), join(folder, name));
    }
    await symlink(join(root, 'dist', 'lib'), join(folder, 'lib'));

    return { name: basename(root), bench, program, remove: () => rm(folder, { recursive: true }) };
}

async function programOf(root: string): Promise<string> {
    const { bin } = JSON.parse(await readFile(join(root, 'package.json'), 'utf8')) as { bin: { scanwire: string } };
    return join(root, bin.scanwire);
}
