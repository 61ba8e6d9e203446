import { type Command, InvalidArgumentError } from 'commander';
import type { Call, Handler } from './call.ts';
import { DEFAULT_DATA } from './data-folder.ts';
import { announced } from './output/announced.ts';
import { printAnswer } from './output/print-answer.ts';
import { perform } from './perform.ts';

/**
 * A command with the options that every one has, also those that need no data folder. `usage` is its name and its arguments,
 * as commander writes them.
 */
export function command(parent: Command, usage: string, description: string, handler: Handler): Command {
    return parent
        .command(usage)
        .description(description)
        .option('--json', 'print one JSON document')
        .option('--data <dir>', 'data folder', DEFAULT_DATA)
        .action(async (...given: unknown[]) => {
            const self = given.at(-1) as Command;
            await printAnswer(await handler(callOf(self)), self.opts().json === true);
        });
}

function callOf(self: Command): Call {
    const options = self.opts();
    const data = String(options.data);
    const json = options.json === true;
    return {
        data,
        json,
        args: self.args,
        options,
        perform(operation, input) {
            const answer = perform(data, operation, input);
            return operation.delivers === true && !json ? announced('Waiting for the outcome of the test …', answer) : answer;
        },
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
