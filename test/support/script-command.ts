import type { Command } from 'commander';
import { commander } from '../../cli/command.ts';
import { wholeNumber } from '../../cli/option-values.ts';

const MOST = 1_000_000_000;

/** The command line of `npm run <name>`: answers `--help`, and names the option that does not fit. */
export function scriptCommand(name: string, description: string): Command {
    return new commander.Command(`npm run ${name} --`).description(description).allowExcessArguments(false);
}

/** Parses an option that counts something: at least one. */
export const count: (text: string) => number = wholeNumber(1, MOST);

/** Parses an option that chooses what chance does. */
export const seed: (text: string) => number = wholeNumber(0, MOST);

/** The seed of who gave none. */
export function anySeed(): number {
    return Math.floor(Math.random() * MOST);
}
