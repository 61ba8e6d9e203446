#!/usr/bin/env node
import { Command, CommanderError } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import { VERSION } from '../lib/version.ts';
import { addDeliveries } from './commands/deliveries.ts';
import { addEvents } from './commands/events.ts';
import { addExporters } from './commands/exporters.ts';
import { addImport } from './commands/import.ts';
import { addKeys } from './commands/keys.ts';
import { addLicense } from './commands/license.ts';
import { addListen } from './commands/listen.ts';
import { addMigrate } from './commands/migrate.ts';
import { addRecords } from './commands/records.ts';
import { addServe } from './commands/serve.ts';
import { addWorker } from './commands/worker.ts';
import { printError } from './output/errors.ts';

const FAILURE = 1;
const WRONG_USAGE = 2;
/** In milliseconds. */
const PATIENCE = 2_000;

const json = process.argv.includes('--json');

// A variable that is set to nothing is one that is not set.
for (const name of ['DATABASE_URL', 'REDIS_URL', 'SCANWIRE_KEY_RING', 'SCANWIRE_EGRESS_ALLOW']) {
    if (process.env[name] === '') {
        delete process.env[name];
    }
}

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever read our output has had enough, for example `head`: no reason for an error.
    if (error.code === 'EPIPE') {
        process.exit(0);
    }

    printError(new ScanwireError('UNAVAILABLE', `Cannot write to stdout: ${error.code}`), json);
    process.exit(FAILURE);
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
        const message = error.code === 'commander.help' ? 'a command is missing' : usageError(error.message);
        process.stderr.write(`${JSON.stringify({ error: { code: 'USAGE', field: null, message } })}\n`);
    }

    return WRONG_USAGE;
}

/** The whole command line. Commander's own exits are thrown, so that there is one place that ends the process. */
export function commandLine(): Command {
    const program = new Command('scanwire')
        .description("Puts a server's scan data on the wire: REST API, signed webhooks, HTTPS scan records.")
        .version(VERSION)
        .exitOverride()
        .configureOutput({ outputError: (text, write) => write(`scanwire: ${usageError(text)}\n`) })
        .helpCommand(false)
        .showHelpAfterError(false)
        .enablePositionalOptions();

    for (const add of [
        addServe,
        addWorker,
        addImport,
        addKeys,
        addExporters,
        addEvents,
        addDeliveries,
        addRecords,
        addLicense,
        addMigrate,
        addListen,
    ]) {
        add(program);
    }

    for (const group of program.commands) {
        group.helpCommand(false);
    }

    return program;
}

/** What is wrong with the usage, in one line. */
function usageError(text: string): string {
    return text
        .replace(/^error: /, '')
        .trim()
        .replaceAll('\n', ' ');
}
