#!/usr/bin/env node
import { ScanwireError } from '../lib/errors.ts';
import { commander } from './command.ts';
import { printError } from './output/errors.ts';
import { commandLine, usageError } from './program.ts';

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

    process.exit(failed(new ScanwireError('UNAVAILABLE', `Cannot write to stdout: ${error.code}`)));
});

try {
    // With --json, wrong usage goes out as JSON too.
    await commandLine({ quiet: json }).parseAsync();
} catch (error) {
    process.exitCode = failed(error);
    // Something half open must not keep a failed command from ending.
    setTimeout(() => process.exit(), PATIENCE).unref();
}

/** Says what went wrong; the exit code. */
function failed(error: unknown): number {
    if (!(error instanceof commander.CommanderError)) {
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
