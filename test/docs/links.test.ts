import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { dirname, join, normalize } from 'node:path';
import t from 'tap';

const pages = [
    'README.md',
    'CHANGELOG.md',
    'CONTRIBUTING.md',
    'SECURITY.md',
    'UPGRADING.md',
    ...markdownIn('docs'),
    ...markdownIn('examples'),
    ...markdownIn('fixtures'),
];

/** What the package holds, links to which must not be dead for those who have nothing else. */
const [{ files }] = JSON.parse(execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], { encoding: 'utf8' })) as [
    { readonly files: readonly { readonly path: string }[] },
];
const packed = new Set(files.map(({ path }) => path));

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

function markdownIn(folder: string): readonly string[] {
    return readdirSync(folder, { recursive: true, encoding: 'utf8' })
        .filter((name) => name.endsWith('.md'))
        .map((name) => join(folder, name));
}

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
