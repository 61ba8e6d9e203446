import { readFileSync } from 'node:fs';
import t from 'tap';
import { scanwireEach } from '../support/scanwire.ts';
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

/** The commands of a page, without comments: those of its blocks, or of its sentences. */
function commandsIn(page: string, place: 'blocks' | 'sentences'): readonly string[] {
    const text = page.replaceAll(/ *\\\n */g, ' ');
    const found = place === 'blocks' ? /^(?:\$ | {4})?(?:npx )?(scanwire .*)$/gm : /`(?:npx )?(scanwire [^`\n]+)`/g;
    return Array.from(text.matchAll(found), ([, line = '']) => line)
        .map((line) => line.replace(/ +# .*$/, ''))
        .filter((line) => /^scanwire [a-z-]/.test(line))
        .flatMap(alternatives);
}

const commandsOf = (page: string): readonly string[] => [...commandsIn(page, 'blocks'), ...commandsIn(page, 'sentences')];

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

/** What waits for others once it has begun; `test/cli/` runs these. */
const WAITING = /^scanwire (?:listen|mcp)\b/;
/** What a sentence leaves out of a command, and a block does not. */
const INCOMPLETE =
    /missing required argument|argument missing|required option .* not specified|Usage: scanwire \w+ \[options\] \[command\]/;
/** What a sentence has in place of a value: an id, a time, one of several. */
const PLACEHOLDERS: readonly (readonly [placeholder: RegExp, value: string])[] = [
    [/\|\S+/g, ''],
    [/ ID\b/g, ' 1'],
    [/ T\b/g, ' 1h'],
];

/** A host name, in a URL or alone; a file is none. */
const HOST = /^(https?:\/\/)?(?:[a-z0-9-]+\.)+(?:com|org|net|test|example|internal|local)(?::\d+)?(?=\/|$)/;

/**
 * The words of a command as a shell takes them, up to what it does with the output; variables have a value. Files are below the folder, and nobody
 * answers at any host.
 */
function wordsOf(command: string, folder: string): readonly string[] {
    const [own = ''] = command.split(/ (?:[|<>&;]|2>)/);
    const words = own.match(/(?:'[^']*'|"[^"]*"|[^\s'"])+/g) ?? [];
    return words.slice(1).map((word) =>
        word
            .replaceAll(/['"]/g, '')
            .replaceAll(/\$\(?\w+\)?/g, 'value')
            .replace(/^(--[a-z-]+=)?\//, `$1${folder}/`)
            .replace(HOST, '$1127.0.0.1:1'),
    );
}

t.test('a command of a page touches nothing but the folder, and calls nobody', async (t) => {
    t.strictSame(wordsOf('scanwire serve --data /srv/scanwire', '/tmp/own'), ['serve', '--data', '/tmp/own/srv/scanwire']);
    t.strictSame(wordsOf('scanwire records capture www.example.com', '/tmp/own'), ['records', 'capture', '127.0.0.1:1']);
    t.strictSame(wordsOf("scanwire exporters create --url 'https://hooks.example.com/a' --body events.json", '/tmp/own').slice(2), [
        '--url',
        'https://127.0.0.1:1/a',
        '--body',
        'events.json',
    ]);
});

t.test('every command is taken with the values of its options, where nothing runs that it could ask', async (t) => {
    const cwd = t.testdir();
    const texts = pages.map((page) => readFileSync(page, 'utf8'));
    const runnable = (place: 'blocks' | 'sentences') =>
        [...new Set(texts.flatMap((text) => commandsIn(text, place)))].filter(
            (command) => !WAITING.test(command) && !command.includes('…'),
        );
    const blocks = runnable('blocks');
    const sentences = runnable('sentences').map((sentence) =>
        PLACEHOLDERS.reduce((text, [placeholder, value]) => text.replaceAll(placeholder, value), sentence),
    );
    const commands = [...blocks, ...sentences];
    const env = { DATABASE_URL: 'postgres://u@127.0.0.1:1/x' };
    const args = commands.map((command) => wordsOf(command, cwd));
    t.strictSame(
        args.flat().filter((word) => /^(?:-.*=)?\//.test(word) && !word.includes(`${cwd}/`)),
        [],
        'nothing outside of the folder',
    );
    const ran = await scanwireEach(args.map((words) => ({ args: words, cwd, env })));
    const wrong = ran.map(({ code, stderr }, index) =>
        code === 2 && (index < blocks.length || !INCOMPLETE.test(stderr)) ? `${commands[index]}: ${stderr}` : null,
    );
    t.strictSame(
        wrong.filter((fault) => fault !== null),
        [],
        `of ${blocks.length} in blocks and ${sentences.length} in sentences`,
    );
    t.ok(ran.filter(({ code }) => code === 1).length > commands.length / 2, 'most get as far as to what does not run');
});
