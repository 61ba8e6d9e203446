import { readFileSync } from 'node:fs';
import t from 'tap';
import { markdownPages } from './markdown-pages.ts';

/*
 * Commands that the pages say to type, in blocks and within sentences: each is one that there is, with options that it has. What those are says
 * docs/command-line.md, which test/cli/docs.test.ts keeps equal to the command's own help.
 */

const sections = new Map(
    readFileSync('docs/command-line.md', 'utf8')
        .split(/^### /m)
        .slice(1)
        .map((section) => [section.slice(0, section.indexOf('\n')), section]),
);

const pages = markdownPages('docs', 'examples');

/** The commands of a page, without comments. */
function commandsOf(page: string): readonly string[] {
    const text = page.replaceAll(/ *\\\n */g, ' ');
    const lines = Array.from(text.matchAll(/^(?:\$ | {4})?(?:npx )?(scanwire .*)$/gm), ([, line = '']) => line);
    const within = Array.from(text.matchAll(/`(?:npx )?(scanwire [^`\n]+)`/g), ([, line = '']) => line);
    return [...lines, ...within]
        .map((line) => line.replace(/ +# .*$/, ''))
        .filter((line) => /^scanwire [a-z-]/.test(line))
        .flatMap(alternatives);
}

/** `scanwire exporters pause|resume` are two. */
function alternatives(line: string): readonly string[] {
    const [, before = '', words = '', after = ''] = /^(scanwire \w+ )(\w+(?:\|\w+)+)(.*)$/.exec(line) ?? [];
    return words === '' ? [line] : words.split('|').map((word) => `${before}${word}${after}`);
}

/** What is wrong with one; null when nothing is. */
function faultOf(command: string): string | null {
    const [, first = '', second = ''] = command.split(' ');
    const options = command.match(/ --[a-z][a-z-]*/g) ?? [];
    const section = sections.get(`scanwire ${first} ${second}`) ?? sections.get(`scanwire ${first}`);
    if (section !== undefined) {
        const unknown = options.filter((option) => !section.includes(` ${option} `));
        return unknown.length === 0 ? null : `${command}: has no${unknown.join('')}`;
    }

    const isGroup = second === '' && [...sections.keys()].some((name) => name.startsWith(`scanwire ${first} `));
    return isGroup ? null : `${command}: is no command`;
}

t.test('every command of every page is one that there is', async (t) => {
    const commands = pages.flatMap((page) => commandsOf(readFileSync(page, 'utf8')));
    t.ok(commands.length > 150, `${commands.length} commands`);
    t.strictSame(
        commands.flatMap((command) => faultOf(command) ?? []),
        [],
    );
});

t.test('sees a command that is none, and an option that a command has not', async (t) => {
    const page =
        '    npx scanwire server\n    scanwire keys make one\nby `scanwire serve --prot 1` and\n    scanwire exporters \\\n        create --name x --url-fil y  # --no';
    t.strictSame(commandsOf(page).map(faultOf), [
        'scanwire server: is no command',
        'scanwire keys make one: is no command',
        'scanwire exporters create --name x --url-fil y: has no --url-fil',
        'scanwire serve --prot 1: has no --prot',
    ]);
});
