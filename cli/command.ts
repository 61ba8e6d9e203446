import { type Command, InvalidArgumentError } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import { ask } from './client.ts';
import { DEFAULT_DATA, dataFolder, dataFolderExists } from './data-folder.ts';
import type { Operation } from './operations.ts';
import { runningServer } from './server-socket.ts';

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

/** What every command is called with. */
export interface Invocation {
    /** Path of the data folder as the user gave it. */
    readonly data: string;
    /** Prints one JSON document in place of text. */
    readonly json: boolean;
}

/** A command at work: its arguments, its options, and the operations it may ask for. */
export interface Call extends Invocation {
    readonly args: readonly string[];
    readonly options: Readonly<Record<string, unknown>>;
    /** Runs the operation in the server of the data folder, or here where none runs. Times in the answer are ISO 8601 texts by then. */
    perform<Input extends object, Output>(operation: Operation<Input, Output>, input: Input): Promise<Output>;
}

export type Handler = (call: Call) => Promise<Answer | undefined>;

/**
 * Runs the operation in the server that runs on the data folder; where none does, in this process on the same stores. What it
 * answers is plain JSON data either way.
 *
 * @throws ScanwireError `NOT_FOUND` when there is nothing to look at: no folder, and an operation that makes none.
 */
async function perform<Input extends object, Output>(data: string, operation: Operation<Input, Output>, input: Input): Promise<Output> {
    const folder = dataFolder(data);
    const server = await runningServer(folder);
    if (server !== null) {
        return ask(server, operation, input);
    }

    const fresh = process.env.DATABASE_URL === undefined && !(await dataFolderExists(folder));
    if (fresh && operation.creates !== true) {
        throw new ScanwireError('NOT_FOUND', `There is no data folder at ${folder.path}: name it with --data, or run scanwire serve`, {
            field: 'data',
        });
    }

    const { openSystem } = await import('./system.ts');
    const system = await openSystem({ folder, environment: process.env, onError: () => {} });
    try {
        if (operation.delivers === true) {
            await system.deliverAlone();
        }

        return JSON.parse(JSON.stringify(await operation.run(system, input))) as Output;
    } finally {
        await system.close();
    }
}

/** What a command has to say. */
export interface Answer {
    /** For `--json`. */
    readonly json: unknown;
    /** For people, without the last line break. Asked for only when it is printed. */
    readonly text: () => string | Promise<string>;
    /** True when the command did its work and the result is bad: exit code 1. */
    readonly failed?: boolean;
    /** True when stdout carries something else. */
    readonly aside?: boolean;
}

/** Prints what a command has to say; a bad result makes the exit code 1. */
async function printAnswer(answer: Answer | undefined, json: boolean): Promise<void> {
    if (answer === undefined) {
        return;
    }

    const text = json ? JSON.stringify(answer.json) : await answer.text();
    (answer.aside === true ? process.stderr : process.stdout).write(`${text}\n`);
    if (answer.failed === true) {
        process.exitCode = 1;
    }
}

/** After this long a person wonders, in milliseconds. */
const SILENCE = 1000;

/** What `work` comes to; where it takes long and a person looks on, stderr says what is waited for. */
async function announced<T>(text: string, work: Promise<T>): Promise<T> {
    const timer = setTimeout(() => {
        if (process.stderr.isTTY) {
            process.stderr.write(`${text}\n`);
        }
    }, SILENCE);
    try {
        return await work;
    } finally {
        clearTimeout(timer);
    }
}
