#!/usr/bin/env node
import { CommanderError } from 'commander';
import { printError } from './output/print-error.ts';
import { commandLine } from './program.ts';

const FAILURE = 1;
const WRONG_USAGE = 2;
/** In milliseconds. */
const PATIENCE = 2_000;

const json = process.argv.includes('--json');

// Whoever read our output has had enough, for example `head`: no reason for an error.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    process.exit(error.code === 'EPIPE' ? 0 : FAILURE);
});

try {
    await run();
} catch (error) {
    process.exitCode = failed(error);
    // Something half open must not keep a failed command from ending.
    setTimeout(() => process.exit(), PATIENCE).unref();
}

async function run(): Promise<void> {
    const program = commandLine();
    if (json) {
        silence(program);
    }

    await program.parseAsync();
}

/** What commander would write to stderr is in its error as well, and goes out as JSON. */
function silence(command: ReturnType<typeof commandLine>): void {
    command.configureOutput({ writeErr: () => {} });
    command.commands.forEach(silence);
}

function failed(error: unknown): number {
    if (!(error instanceof CommanderError)) {
        printError(error, json);
        return FAILURE;
    }

    if (error.exitCode === 0) {
        return 0;
    }

    if (json) {
        const message = error.code === 'commander.help' ? 'a command is missing' : error.message.replace(/^error: /, '');
        process.stderr.write(`${JSON.stringify({ error: { code: 'USAGE', field: null, message } })}\n`);
    }

    return WRONG_USAGE;
}
