import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import t from 'tap';
import { commandLine, complete } from '../../cli/program.ts';

const PAGE = readFileSync(new URL('../../../docs/command-line.md', import.meta.url), 'utf8');

const program = commandLine();
await Promise.all(program.commands.map(complete));

/** The commands that do something, with their whole names. */
function leaves(command: Command, name: string): [string, Command][] {
    return command.commands.length === 0
        ? [[name, command]]
        : command.commands.flatMap((child) => leaves(child, `${name} ${child.name()}`));
}

function sectionOf(name: string): string {
    const [, after = ''] = PAGE.split(`\n### ${name}\n`);
    return after.split(/\n##/)[0] ?? '';
}

t.test('gives every command a section with its help, word for word, and an example', async (t) => {
    for (const [name, command] of leaves(program, 'scanwire')) {
        const section = sectionOf(name);
        t.ok(section.includes(`\`\`\`text\n${command.helpInformation()}\`\`\``), `the help of ${name} is what docs/command-line.md shows`);
        t.match(section, new RegExp(`\n\\$ .*${name}`), `${name} has an example`);
    }
});

t.test('describes no command that does not exist', async (t) => {
    const known = new Set(leaves(program, 'scanwire').map(([name]) => name));
    const described = [...PAGE.matchAll(/^### (scanwire .*)$/gm)].map(([, name]) => name);
    t.same(
        described.filter((name) => !known.has(name ?? '')),
        [],
    );
    t.equal(described.length, known.size);
});
