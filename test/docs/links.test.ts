import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import t from 'tap';
import { markdownPages } from './markdown-pages.ts';

const pages = markdownPages('docs', 'examples', 'fixtures');

/** What the package holds, links to which must not be dead for those who have nothing else. */
const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' })) as [
    { readonly files: readonly { readonly path: string }[] },
];
const packed = new Set(files.map(({ path }) => path));

/** What the pictures may take in all: who clones gets every one that there ever was. */
const MOST_OF_PICTURES = 1_500_000;

for (const page of pages) {
    t.test(`${page} has no dead link`, (t) => {
        for (const [link, path = '', anchor = ''] of linksOf(page)) {
            const target = path === '' ? page : normalize(join(dirname(page), path)).replace(/\/$/, '');
            const found = existsSync(target);
            t.ok(found, `${link}: ${target}`);
            if (found && packed.has(page)) {
                t.ok(isPacked(target), `${link} is in the package`);
            }
            if (found && anchor !== '') {
                t.ok(headingsOf(target).includes(anchor), `${link}: a heading`);
            }
        }
        t.end();
    });
}

for (const page of pages) {
    t.test(`${page} closes each block of code before the next`, (t) => {
        const fences = [...readFileSync(page, 'utf8').matchAll(/^ *(`{3,})(.*)$/gm)];
        for (const [index, [line, ticks, language]] of fences.entries()) {
            const closes = index % 2 === 1;
            t.ok(!closes || (ticks === fences[index - 1]?.[1] && language === ''), `${page}, fence ${index + 1}: ${line}`);
        }
        t.equal(fences.length % 2, 0, 'the last one too');
        t.end();
    });
}

/** Those who have only the package see them from the repository. */
t.test('README.md shows pictures that are there', (t) => {
    const shown = Array.from(readFileSync('README.md', 'utf8').matchAll(/ src(?:set)?="([^"]+)"/g), ([, path = '']) => path);
    t.ok(shown.length >= 3);
    for (const path of shown) {
        t.ok(existsSync(path), path);
        t.notOk(packed.has(path), `${path} is not in the package`);
    }
    const sizes = readdirSync('docs/screenshots').map((name) => statSync(join('docs/screenshots', name)).size);
    t.ok(sizes.reduce((sum, size) => sum + size, 0) < MOST_OF_PICTURES);
    t.end();
});

t.test('docs/admin-console.md names the pages of which there are pictures, light, dark and as a phone shows them', (t) => {
    const [, named = ''] = /are in `docs\/screenshots\/`[^:]*: ([^.]*)\./.exec(readFileSync('docs/admin-console.md', 'utf8')) ?? [];
    const pages = Array.from(named.matchAll(/`([a-z-]+)`/g), ([, name = '']) => name);
    t.same(
        readdirSync('docs/screenshots').toSorted(),
        pages.flatMap((name) => ['dark', 'light', 'phone'].map((look) => `${name}-${look}.webp`)).toSorted(),
    );
    t.end();
});

/** Links within the project: the whole, path and anchor. */
function linksOf(page: string) {
    const text = readFileSync(page, 'utf8').replaceAll(/^```.*?^```$/gms, '');
    return [...text.matchAll(/\]\((?![a-z]+:)([^)#\s]*)(?:#([^)\s]*))?\)/g)];
}

/** The anchors of a page's headings, as they are made by those who show them. */
function headingsOf(page: string): readonly string[] {
    return [...readFileSync(page, 'utf8').matchAll(/^#+ (.*)$/gm)].map(([, heading = '']) =>
        heading
            .toLowerCase()
            .replaceAll(/[^\p{L}\p{N} _-]/gu, '')
            .replaceAll(' ', '-'),
    );
}

function isPacked(target: string): boolean {
    return statSync(target).isDirectory() ? files.some(({ path }) => path.startsWith(`${target}/`)) : packed.has(target);
}
