import { readFileSync } from 'node:fs';
import t from 'tap';
import { scanwire } from '../support/scanwire.ts';

const PAGE = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8');

/** The help of every command that does something, by its whole name. */
async function* helps(...words: readonly string[]): AsyncGenerator<readonly [name: string, help: string], void, undefined> {
    const { stdout } = await scanwire([...words, '--help']);
    const [, commands] = stdout.split('\nCommands:\n');
    if (commands === undefined) {
        yield [['scanwire', ...words].join(' '), stdout];
        return;
    }

    for (const [, name = ''] of commands.matchAll(/^ {2}(\w+)/gm)) {
        yield* helps(...words, name);
    }
}

function sectionOf(name: string): string {
    const [, after = ''] = PAGE.split(`\n### ${name}\n`);
    return after.split(/\n##/)[0] ?? '';
}

t.test('gives every command a section with its help, word for word, and an example, and no other', async (t) => {
    const known: string[] = [];
    for await (const [name, help] of helps()) {
        known.push(name);
        const section = sectionOf(name);
        t.ok(section.includes(`\`\`\`text\n${help}\`\`\``), `the help of ${name} is what docs/command-line.md shows`);
        t.match(section, new RegExp(`\n\\$ .*${name}`), `${name} has an example`);
        const typed = Array.from(section.matchAll(/^\$ .*$/gm), ([line]) => line.match(/ --[a-z-]+/g) ?? []).flat();
        t.strictSame(
            typed.filter((option) => !help.includes(option)),
            [],
            `${name} is shown with options that it has`,
        );
    }

    t.ok(known.length > 25, `${known.length} commands`);
    const described = Array.from(PAGE.matchAll(/^### (scanwire .*)$/gm), ([, name]) => name);
    t.same(described.toSorted(), known.toSorted());
});
