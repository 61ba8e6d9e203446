import { type Command, InvalidArgumentError } from 'commander';
import type { Call, Handler } from './call.ts';
import { DEFAULT_DATA } from './data-folder.ts';
import { printAnswer } from './output/print-answer.ts';
import { perform } from './perform.ts';

/** A command with the options that every one has. `usage` is its name and its arguments, as commander writes them. */
export function command(parent: Command, usage: string, description: string, handler: Handler): Command {
    return bare(parent, usage, description, handler).option('--data <dir>', 'data folder', DEFAULT_DATA);
}

/** The same for a command that works without a data folder. */
export function bare(parent: Command, usage: string, description: string, handler: Handler): Command {
    return parent
        .command(usage)
        .description(description)
        .option('--json', 'print one JSON document')
        .action(async (...given: unknown[]) => {
            const self = given.at(-1) as Command;
            await printAnswer(await handler(callOf(self)), self.opts().json === true);
        });
}

function callOf(self: Command): Call {
    const options = self.opts();
    const data = String(options.data ?? DEFAULT_DATA);
    return {
        data,
        json: options.json === true,
        args: self.args,
        options,
        perform: (operation, input) => perform(data, operation, input),
    };
}

/** A whole number of an option. */
export function wholeNumber(least: number, most: number): (text: string) => number {
    return (text) => {
        const value = Number(text);
        if (!/^\d+$/.test(text) || value < least || value > most) {
            throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
        }

        return value;
    };
}

/** Gathers an option that may be given several times. */
export function repeated<T>(parse: (text: string) => T): (text: string, before: readonly T[] | undefined) => readonly T[] {
    return (text, before) => [...(before ?? []), parse(text)];
}
