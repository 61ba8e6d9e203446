import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import t from 'tap';

/*
 * Keeps the sources one noun a file as they grow; CONTRIBUTING.md says what that means. Shares rather than numbers, since the
 * sources are going to grow. The linter keeps the length of functions.
 */

interface Source {
    readonly lines: number;
    /** Files that import it, also later and only for types. */
    readonly importers: Set<string>;
}

const ROOTS = ['lib', 'plugins', 'adapters', 'cli'] as const;
const MAX_LINES = 350;
const SMALL = 30;

const sources = new Map<string, Source>();
for (const file of ROOTS.flatMap(sourcesOf)) {
    sources.set(file, { lines: readFileSync(file, 'utf8').split('\n').length - 1, importers: new Set() });
}

for (const file of sources.keys()) {
    for (const [, specifier = ''] of readFileSync(file, 'utf8').matchAll(/(?:from|import|import\() ?'(\.{1,2}\/[^']+\.ts)'/g)) {
        sources.get(normalize(join(dirname(file), specifier)))?.importers.add(file);
    }
}

/** Loaded by its path: the face of a folder, the command, a thread, a script of the build. */
const isEntry = (file: string): boolean => /\/index\.ts$|^cli\/scanwire\.ts$|^adapters\/pglite\/(?:thread|make-template)\.ts$/.test(file);
const isLaw = (file: string): boolean => file.startsWith('adapters/contract/');
const isMigration = (file: string): boolean => file.includes('/migrations/');
/** What pages say is in one file, of which a translator makes another one. */
const isTexts = (file: string): boolean => file === 'plugins/admin-console/screens/texts.ts';
/** Loaded by name, when the command is typed. */
const isCommand = (file: string): boolean => file.startsWith('cli/commands/');

t.test('no file is longer than can be overlooked', (t) => {
    const long = filesWhere((file, { lines }) => lines > MAX_LINES && !isLaw(file) && !isMigration(file) && !isTexts(file));
    t.strictSame(long, []);
    t.end();
});

t.test('few files are of a handful of lines', (t) => {
    const small = filesWhere((_, { lines }) => lines <= SMALL);
    t.ok(share(small) <= 0.12, `${small.length} of ${sources.size} files have at most ${SMALL} lines:\n${small.join('\n')}`);
    t.end();
});

t.test('few files serve a single other one', (t) => {
    const single = filesWhere(
        (file, { importers }) => importers.size === 1 && !isEntry(file) && !isLaw(file) && !isMigration(file) && !isCommand(file),
    );
    t.ok(share(single) <= 0.22, `${single.length} of ${sources.size} files have one importer:\n${single.join('\n')}`);
    t.end();
});

t.test('no file but an entry is imported by none', (t) => {
    t.strictSame(
        filesWhere((file, { importers }) => importers.size === 0 && !isEntry(file)),
        [],
    );
    t.end();
});

/** `new ScanwireError('CODE', 'Message'` and the subject of `checked()`, which begins one. */
const MESSAGES = /(?:new \w*Error\(\s*'[A-Z_]+',\s*|\{ subject: )['`]([^'`]*)/g;
/** A capital, a value, the name of what was called with wrong options, or that of a field and its rule. */
const BEGINNING =
    /^(?:[A-Z]|--|\$\{|[a-z][\w-]*(?: options| limits| policy)(?::|$)|[a-z][\w[\]${}]*(?: must be | cannot | repeats | measures ))/;

t.test('errors begin with a capital, or with a name as it was written', (t) => {
    const texts = [...sources.keys()].flatMap((file) =>
        [...readFileSync(file, 'utf8').matchAll(MESSAGES)].map(([, text = '']) => ({ file, text })),
    );
    t.ok(texts.length > 100);
    t.strictSame(
        texts.filter(({ text }) => !BEGINNING.test(text)),
        [],
    );
    t.end();
});

/** Adapters that are made of another one: its pool and its reading of rows. */
const BUILT_ON = ['bullmq on postgres', 'scan-database on postgres'];

t.test('adapters stand side by side, but for those that are built on another', (t) => {
    const folderOf = (file: string): string | undefined => /^adapters\/([^/]+)\//.exec(file)?.[1];
    const arrows = [...sources].flatMap(([file, { importers }]) =>
        [...importers].map((importer) => [folderOf(importer), folderOf(file)] as const),
    );
    const between = arrows.filter(([from, to]) => from !== undefined && to !== undefined && from !== to);
    t.strictSame([...new Set(between.map((arrow) => arrow.join(' on ')))].sort(), BUILT_ON);
    t.end();
});

/** What is exported, with the line before it. Migrations and the commands' `define` say what they are by where they are. */
const EXPORTS = /^(.*)\nexport (?:declare |default )?(?:async |abstract )?(?:function\*?|const|class|interface|type|enum) (\w+)/gm;

t.test('every export says what it is', (t) => {
    const bare = [...sources.keys()]
        .filter((file) => !isMigration(file))
        .flatMap((file) =>
            [...readFileSync(file, 'utf8').matchAll(EXPORTS)]
                .filter(([, before = '', name]) => !before.endsWith('*/') && !(name === 'define' && isCommand(file)))
                // Further overloads of a function that says it at its first one.
                .filter(([, before = '', name]) => !new RegExp(`^export .*function\\*? ${name}\\b|^\\): .*;$`).test(before))
                .map(([, , name]) => `${file} ${name}`),
        );
    t.strictSame(bare, []);
    t.end();
});

t.test('tests lie where their sources do', (t) => {
    const folders = ROOTS.flatMap((root) => readdirSync(join('test', root), { recursive: true, withFileTypes: true }))
        .filter((entry) => entry.isFile() && entry.name.endsWith('.test.ts'))
        .map((entry) => relative('test', entry.parentPath));
    t.strictSame(
        [...new Set(folders)].filter((folder) => !existsSync(folder)),
        [],
    );
    t.end();
});

function filesWhere(holds: (file: string, source: Source) => boolean): string[] {
    return [...sources].filter(([file, source]) => holds(file, source)).map(([file]) => file);
}

function share(files: readonly string[]): number {
    return files.length / sources.size;
}

function sourcesOf(root: string): string[] {
    return readdirSync(root, { encoding: 'utf8', recursive: true })
        .filter((name) => name.endsWith('.ts'))
        .map((name) => join(root, name));
}
