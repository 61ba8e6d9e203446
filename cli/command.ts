import { mkdtemp, rm } from 'node:fs/promises';
import { createRequire } from 'node:module';
import type { Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import { jsonText, printableLines } from '../lib/printable.ts';
import { type DownloadName, endpoints, type Input, type OperationName, type Output } from '../plugins/admin-console/operations.ts';
import { ask, download } from './admin-client.ts';
import { connectToServer, serverProcess } from './admin-socket.ts';
import { type DataFolder, DEFAULT_DATA, dataFolder, dataFolderExists } from './data-folder.ts';

/** By `require`: an `import` of CommonJS first searches it for its exports, which takes as long as loading it. */
export const commander: typeof import('commander') = createRequire(import.meta.url)('commander');

/** A command below a group. `usage` is its name and its arguments, as commander writes them. */
export function command(group: Command, usage: string, description: string, handler: Handler): Command {
    return performing(withCommonOptions(group.command(usage).description(description)), handler);
}

/** Gives a command the options that every one has, also those that need no data folder. */
export function withCommonOptions(self: Command): Command {
    return self.option('--json', 'print one JSON document').option('--data <dir>', 'data folder', folderPath, DEFAULT_DATA);
}

/** An empty path is the working folder, and most likely a variable that is not set. */
function folderPath(text: string): string {
    if (text === '') {
        throw new commander.InvalidArgumentError('It must name a folder.');
    }

    return text;
}

/** Says what a command with {@link withCommonOptions} does. */
export function performing(self: Command, handler: Handler): Command {
    return self.action(async () => {
        const options = self.opts();
        const data = String(options.data);
        const json = options.json === true;
        const on = { data, config: options.config === undefined ? null : String(options.config), json };
        const answer = await handler({
            data,
            json,
            args: self.args,
            options,
            perform(name, input) {
                const output = perform(on, name, input);
                return endpoints[name].delivers === true && !json ? announced('Waiting for the outcome of the test …', output) : output;
            },
            download: (name, input, take) => taken(on, name, input, take),
        });
        await printAnswer(answer, json);
        if (on.config !== null) {
            // What the module has opened must not keep the command from ending.
            process.stdout.write('', () => process.exit());
        }
    });
}

/** What an operation is to be done on. */
interface Target {
    /** Path of the data folder as the user gave it. */
    readonly data: string;
    /** The module with the options of a host, null where none was given. */
    readonly config: string | null;
    readonly json: boolean;
}

/** What a command does; undefined where it has said everything itself. */
export type Handler = (call: Call) => Promise<Answer | undefined>;

/** A command at work: its arguments, its options, and the operations it may ask for. */
export interface Call {
    /** Path of the data folder as the user gave it. */
    readonly data: string;
    /** Prints one JSON document in place of text. */
    readonly json: boolean;
    readonly args: readonly string[];
    readonly options: Readonly<Record<string, unknown>>;
    /** Runs the operation in the server of the data folder, or here where none runs. Times in the answer are ISO 8601 texts by then. */
    perform<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
    /** Runs an operation that makes a file, in the same place; `take` gets the file as it is made. */
    download<Name extends DownloadName, T>(name: Name, input: Input<Name>, take: Take<T>): Promise<T>;
}

type Take<T> = (pieces: AsyncIterable<Uint8Array | string>) => Promise<T>;

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

/**
 * Runs the operation in the server that runs on the data folder; where none does, in this process on the same stores. What it
 * answers is plain JSON data either way.
 *
 * @throws ScanwireError `NOT_FOUND` when there is nothing to look at: no folder, and an operation that makes none; `INVALID_INPUT` for options of a host
 *     where a server runs.
 */
async function perform<Name extends OperationName>(on: Target, name: Name, input: Input<Name>): Promise<Output<Name>> {
    const server = await serverFor(on, name);
    if (server !== null) {
        // What is sent as it is read shows how far it is.
        return endpoints[name].streamed === true ? ask(server, name, input) : await unanswered(on, () => ask(server, name, input));
    }

    const output = await performHere(on, name, input, async (answer) => answer);
    return JSON.parse(JSON.stringify(output)) as Output<Name>;
}

async function taken<Name extends DownloadName, T>(on: Target, name: Name, input: Input<Name>, take: Take<T>): Promise<T> {
    const server = await serverFor(on, name);
    return server === null
        ? performHere(on, name, input, ({ text }) => take(text))
        : take(await unanswered(on, () => download(server, name, input)));
}

/** A connection to the server that runs on the data folder, null where none does. */
async function serverFor({ data, config }: Target, name: OperationName): Promise<Socket | null> {
    const folder = dataFolder(data);
    const server = await connectToServer(folder);
    if (server !== null && config !== null) {
        server.destroy();
        const message = `--config does not go with the server that runs on ${folder.path}: it has options of its own`;
        throw new ScanwireError('INVALID_INPUT', message, { field: 'config' });
    }

    // What a host has made is there.
    const makesNone = (endpoints[name].creates !== true || config !== null) && process.env.DATABASE_URL === undefined;
    if (server === null && makesNone && !(await dataFolderExists(folder))) {
        throw new ScanwireError(
            'NOT_FOUND',
            `There is no data folder at ${folder.path}: name it with --data, run scanwire serve, or set DATABASE_URL for the database of a host`,
            {
                field: 'data',
            },
        );
    }

    return server;
}

/** @param use Gets what the operation answers, while the stores are open. */
async function performHere<Name extends OperationName, T>(
    { data, config: file }: Target,
    name: Name,
    input: Input<Name>,
    use: (output: Output<Name>) => Promise<T>,
): Promise<T> {
    const { streamed, downloads, delivers } = endpoints[name];
    // An embedded database that is open for one answer ends before V8's second compiler has paid for itself: it takes half of the time.
    if (streamed !== true && downloads !== true) {
        setFlagsFromString('--liftoff-only');
    }
    // Loaded here: the client of a running server needs none of it.
    const [{ withOwnSystem }, { handlersOf }, { OPERATOR }] = await Promise.all([
        import('./deployment.ts'),
        import('../plugins/admin-console/handlers.ts'),
        import('../plugins/admin-console/audit.ts'),
    ]);
    const config = file === null ? null : await (await import('./host-options.ts')).hostOptions(file);
    const act = (folder: DataFolder): Promise<T> => {
        const options = { folder, config, environment: process.env, onError: () => {} };
        return withOwnSystem(options, delivers === true, async (system) => use(await handlersOf(system, OPERATOR)[name](input)));
    };
    const folder = dataFolder(data);
    return (await leavesNothing(folder, name, config?.keyRing !== undefined)) ? await inPassingFolder(act) : await act(folder);
}

/**
 * Whether a data folder that is not there would hold nothing of use afterwards: what the operation is about is in the database of a host.
 *
 * @param hasRing The key ring is among the options of the host.
 */
async function leavesNothing(folder: DataFolder, name: OperationName, hasRing: boolean): Promise<boolean> {
    const { DATABASE_URL: database, SCANWIRE_KEY_RING: ring } = process.env;
    const { keeps } = endpoints[name];
    const isKept = keeps === 'files' || (keeps === 'keyRing' && ring === undefined && !hasRing);
    return database !== undefined && !isKept && !(await dataFolderExists(folder));
}

/** In a data folder that is gone afterwards. */
async function inPassingFolder<T>(act: (folder: DataFolder) => Promise<T>): Promise<T> {
    const path = await mkdtemp(join(tmpdir(), 'scanwire-'));
    try {
        return await act(dataFolder(path));
    } finally {
        await rm(path, { recursive: true, force: true });
    }
}

/** Prints what a command has to say; a bad result makes the exit code 1. */
async function printAnswer(answer: Answer | undefined, json: boolean): Promise<void> {
    if (answer === undefined) {
        return;
    }

    const text = json ? jsonText(answer.json) : printableLines(await answer.text());
    (answer.aside === true ? process.stderr : process.stdout).write(`${text}\n`);
    if (answer.failed === true) {
        process.exitCode = 1;
    }
}

/** After this long a person wonders, and after that long whether the server still does anything, in milliseconds. */
const [SILENCE, LONG_SILENCE] = [1000, 5000];

/** What `work` comes to; where it takes long and a person looks on, stderr says what is waited for. */
async function announced<T>(text: string, work: Promise<T>, silence: number = SILENCE): Promise<T> {
    const timer = setTimeout(() => {
        if (process.stderr.isTTY) {
            process.stderr.write(`${text}\n`);
        }
    }, silence);
    try {
        return await work;
    } finally {
        clearTimeout(timer);
    }
}

/** An answer of the server that runs on the data folder: it may have been stopped, and takes connections all the same. */
async function unanswered<T>({ data, json }: Target, asked: () => Promise<T>): Promise<T> {
    if (json || !process.stderr.isTTY) {
        return await asked();
    }

    const pid = await serverProcess(dataFolder(data));
    return await announced(`Waiting for the server (process ${pid}), which has not answered yet …`, asked(), LONG_SILENCE);
}

/** The fields of an operation's input that the user gave. */
export function definedFields<T>(fields: Readonly<Record<keyof T, unknown>>): Partial<T> {
    return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Partial<T>;
}
