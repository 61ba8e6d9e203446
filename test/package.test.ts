import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import t from 'tap';

/*
 * What the package offers, name by name, so that none comes or goes unnoticed. After a wanted change:
 * UPDATE_EXPORTS=1 npm test -- test/package.test.ts
 */
const LIST = 'test/package-exports.json';

interface Manifest {
    readonly exports: Readonly<Record<string, { readonly types: string; readonly default: string } | string>>;
    readonly bin: Readonly<Record<string, string>>;
    readonly keywords: readonly string[];
}

const manifest = JSON.parse(readFileSync('package.json', 'utf8')) as Manifest;
const subpaths = Object.keys(manifest.exports)
    .filter((subpath) => !subpath.endsWith('.json'))
    .map((subpath) => subpath.slice('./'.length));

t.test('offers the listed names and no others', async (t) => {
    const offered: Record<string, string[]> = {};
    for (const subpath of subpaths) {
        offered[subpath] = Object.keys(await import(`scanwire/${subpath}`)).sort();
    }

    if (process.env.UPDATE_EXPORTS === '1') {
        writeFileSync(LIST, `${JSON.stringify(offered, null, 4)}\n`);
    }

    t.strictSame(offered, JSON.parse(readFileSync(LIST, 'utf8')));
});

/** The names of the types that an entry exports, as its declarations say. */
function typesOf(subpath: string): readonly string[] {
    const source = readFileSync((manifest.exports[`./${subpath}`] as { readonly types: string }).types, 'utf8');
    const listed = [...source.matchAll(/^export (type )?\{([^}]*)\}/gm)].flatMap(([, all, names = '']) =>
        names
            .split(',')
            .map((name) => name.trim())
            .filter((name) => name !== '' && (all !== undefined || name.startsWith('type ')))
            .map((name) => name.split(' ').at(-1) as string),
    );
    return [...listed, ...Array.from(source.matchAll(/^export (?:declare )?(?:interface|type) (\w+)/gm), ([, name = '']) => name)];
}

t.test('has every name that it offers on a page, those of types too', (t) => {
    const pages = readdirSync('docs').filter((name) => name.endsWith('.md'));
    const text = ['README.md', ...pages.map((name) => `docs/${name}`)].map((page) => readFileSync(page, 'utf8')).join('\n');
    const words = new Set([...text.matchAll(/^```.*?^```$|`[^`\n]+`/gms)].flatMap(([code]) => code.match(/\w+/g) ?? []));
    const types = subpaths.flatMap((entry) => typesOf(entry).map((name) => ({ entry, name })));
    t.ok(types.length > 300, `${types.length} types`);
    t.strictSame(
        types.filter(({ name }) => !words.has(name)),
        [],
        'docs/exports.md has them below Types',
    );
    const offered = JSON.parse(readFileSync(LIST, 'utf8')) as Readonly<Record<string, readonly string[]>>;
    const missing = Object.entries(offered).flatMap(([entry, names]) =>
        names.filter((name) => !words.has(name)).map((name) => `${entry}: ${name}`),
    );
    t.strictSame(missing, [], 'docs/exports.md has what no other page shows');
    t.end();
});

t.test('offers one and the same class of errors wherever it is thrown', async (t) => {
    const { ScanwireError } = await import('scanwire/webhooks');
    // Laws throw what an assertion throws.
    for (const subpath of subpaths.filter((one) => one !== 'contract')) {
        t.equal((await import(`scanwire/${subpath}`)).ScanwireError, ScanwireError, subpath);
    }
});

t.test('makes an answer of them by the same function in every plugin', async (t) => {
    const { toBoom } = await import('scanwire/webhook-exporter');
    for (const subpath of subpaths.filter((one) => existsSync(`plugins/${one}`))) {
        t.equal((await import(`scanwire/${subpath}`)).toBoom, toBoom, subpath);
    }
});

t.test('loads by require, and each plugin registers alone', (t) => {
    const output = execFileSync(process.execPath, ['test/support/register-every-plugin.cjs'], { encoding: 'utf8' });
    const { names, plugins } = JSON.parse(output) as { names: Record<string, string[]>; plugins: string[] };
    t.strictSame(Object.keys(names).sort(), subpaths.toSorted());
    t.strictSame(
        plugins.sort(),
        subpaths.filter((subpath) => existsSync(`plugins/${subpath}`)).sort(),
        'every folder of plugins/ that is exported exports a plugin',
    );
    t.end();
});

t.test('has the files that its manifest names', (t) => {
    const files = Object.values(manifest.exports).flatMap((target) =>
        typeof target === 'string' ? [target] : [target.types, target.default],
    );
    for (const file of [...files, ...Object.values(manifest.bin)]) {
        t.ok(existsSync(file), file);
    }

    t.end();
});

t.test('can be found by what it is', (t) => {
    for (const word of ['hapi', 'hapi-plugin', 'webhooks', 'api-keys', 'rest-api']) {
        t.ok(manifest.keywords.includes(word), word);
    }

    // Whoever is given one of these addresses looks for the others.
    const addresses = ['repository', 'homepage', 'bugs'].filter((name) => name in manifest);
    t.ok(addresses.length === 0 || addresses.length === 3, addresses.join());
    t.end();
});

t.test('locks every package by its bytes, those of other platforms too, and none by its registry', (t) => {
    const { packages } = JSON.parse(readFileSync('package-lock.json', 'utf8')) as {
        readonly packages: Readonly<Record<string, { integrity?: string; inBundle?: boolean; resolved?: string }>>;
    };
    const all = Object.entries(packages).filter(([path, { inBundle }]) => path !== '' && inBundle !== true);
    t.ok(all.length > 300);
    t.strictSame(
        all.filter(([, { resolved }]) => resolved !== undefined),
        [],
    );
    t.strictSame(
        all.filter(([, { integrity }]) => integrity === undefined).map(([path]) => path),
        [],
    );
    t.end();
});
