import { readFileSync } from 'node:fs';
import t from 'tap';
import { scanwireEach } from '../support/scanwire.ts';

const PAGE = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8');

/** The help of every command that does something, by its whole name. */
async function helps(names: readonly (readonly string[])[]): Promise<readonly (readonly [name: string, help: string])[]> {
    const ran = await scanwireEach(names.map((words) => ({ args: [...words, '--help'] })));
    const found: (readonly [string, string])[] = [];
    const below: string[][] = [];
    for (const [index, words] of names.entries()) {
        const help = ran[index]?.stdout ?? '';
        const [, commands] = help.split('\nCommands:\n');
        if (commands === undefined) {
            found.push([['scanwire', ...words].join(' '), help]);
        } else {
            below.push(...Array.from(commands.matchAll(/^ {2}(\w+)/gm), ([, name = '']) => [...words, name]));
        }
    }

    return below.length === 0 ? found : [...found, ...(await helps(below))];
}

function sectionOf(name: string): string {
    const [, after = ''] = PAGE.split(`\n### ${name}\n`);
    return after.split(/\n##/)[0] ?? '';
}

t.test('gives every command a section with its help, word for word, and an example, and no other', async (t) => {
    const known: string[] = [];
    for (const [name, help] of await helps([[]])) {
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
