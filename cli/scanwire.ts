#!/usr/bin/env node
import { setFlagsFromString } from 'node:v8';
import type { Command } from 'commander';
import { ScanwireError } from '../lib/errors.ts';
import { jsonText } from '../lib/printable.ts';
import { VERSION } from '../lib/version.ts';
import { commander, withCommonOptions } from './command.ts';
import { usageError, WrongUsage } from './output/errors.ts';

interface Entry {
    /** Name and arguments, as commander writes them. */
    readonly usage: string;
    readonly description: string;
    /** Has commands below it and does nothing itself. */
    readonly isGroup?: true;
    /**
     * A command must answer quickly, so that only the module of the one that was typed is loaded. It adds the options of the command
     * and its action, or the commands below it.
     */
    load(): Promise<{ define(self: Command): void }>;
}

/**
 * What a worker holds at once is bounded, but what it has held and dropped V8 lets pile up to four times of that; and to compile the
 * HTTP parser, which is WebAssembly, with its optimising compiler costs 26 MiB and saves nothing. Set before anything is compiled.
 */
const MODEST = ['--heap-growing-percent=20', '--liftoff-only'];

const COMMANDS: readonly Entry[] = [
    {
        usage: 'serve',
        description: 'run the server: REST API, exporters, one worker',
        load: () => import('./commands/serve.ts'),
    },
    {
        usage: 'worker',
        description: 'send for collectors; needs DATABASE_URL, and REDIS_URL if the queue is on Redis',
        load: () => {
            for (const flag of MODEST) {
                setFlagsFromString(flag);
            }
            return import('./commands/worker.ts');
        },
    },
    {
        usage: 'import <file>',
        description:
            'import a scan: XML of nmap, Metasploit or Nessus, JSON lines of hosts or of masscan, naabu, httpx, zgrab2; - for stdin',
        load: () => import('./commands/import.ts'),
    },
    {
        usage: 'export',
        description: 'write the hosts of a workspace with what is below them into a file: JSON lines, CSV, XML of nmap',
        load: () => import('./commands/export.ts'),
    },
    { usage: 'workspaces', description: 'workspaces of the inventory', isGroup: true, load: () => import('./commands/workspaces.ts') },
    { usage: 'hosts', description: 'hosts of the inventory', isGroup: true, load: () => import('./commands/hosts.ts') },
    { usage: 'keys', description: 'API keys of the REST API', isGroup: true, load: () => import('./commands/keys.ts') },
    {
        usage: 'exporters',
        description: 'receivers that events are sent to',
        isGroup: true,
        load: () => import('./commands/exporters.ts'),
    },
    { usage: 'events', description: 'events for the exporters', isGroup: true, load: () => import('./commands/events.ts') },
    {
        usage: 'deliveries',
        description: 'events on their way to exporters',
        isGroup: true,
        load: () => import('./commands/deliveries.ts'),
    },
    { usage: 'attempts', description: 'what was tried to deliver them', isGroup: true, load: () => import('./commands/attempts.ts') },
    { usage: 'records', description: 'HTTPS scan records', isGroup: true, load: () => import('./commands/records.ts') },
    { usage: 'license', description: 'licence of the REST API', isGroup: true, load: () => import('./commands/license.ts') },
    {
        usage: 'backup <file>',
        description: 'copy the embedded database and its key ring into a file',
        load: () => import('./commands/backup.ts'),
    },
    { usage: 'restore <file>', description: 'make a data folder of a backup', load: () => import('./commands/restore.ts') },
    { usage: 'keyring', description: 'keys that seal what is secret at rest', isGroup: true, load: () => import('./commands/keyring.ts') },
    { usage: 'doctor', description: 'look at what scanwire needs, and say what is wrong', load: () => import('./commands/doctor.ts') },
    {
        usage: 'console',
        description: 'print a link that signs a browser in to the pages of the server',
        load: () => import('./commands/console.ts'),
    },
    { usage: 'audit', description: 'what people have changed', isGroup: true, load: () => import('./commands/audit.ts') },
    { usage: 'migrate', description: 'bring the database up to this version', load: () => import('./commands/migrate.ts') },
    {
        usage: 'listen',
        description: 'receive messages, verify their signatures and print them',
        load: () => import('./commands/listen.ts'),
    },
    {
        usage: 'mcp',
        description: 'let an assistant read, by the Model Context Protocol on stdin and stdout',
        load: () => import('./commands/mcp.ts'),
    },
];

const FAILURE = 1;
const WRONG_USAGE = 2;
/** In milliseconds. */
const PATIENCE = 2_000;

const json = process.argv.includes('--json');

// A variable that is set to nothing is one that is not set.
for (const name of [
    'DATABASE_URL',
    'REDIS_URL',
    'SCANWIRE_KEY_RING',
    'SCANWIRE_EGRESS_ALLOW',
    'SCANWIRE_RESOLVER',
    'SCANWIRE_PROCESS_NAME',
    'SCANWIRE_POOLED',
]) {
    if (process.env[name] === '') {
        delete process.env[name];
    }
}

/** Date filters of templates read hours by the zone of the process, and are an hour off around those that its daylight saving leaves out or repeats. */
process.env.TZ = 'UTC';

process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    // Whoever read our output has had enough, for example `head`: no reason for an error, and none to hide one.
    if (error.code === 'EPIPE') {
        process.exit();
    }

    void fail(new ScanwireError('UNAVAILABLE', `Cannot write to stdout: ${error.code}`)).then(() => process.exit());
});

// What reads the log may end before us, and there is nobody left to tell.
process.stderr.on('error', () => {});

let failure: Promise<void> | undefined;

try {
    await commandLine().parseAsync();
} catch (error) {
    await fail(error);
    // Something half open must not keep a failed command from ending.
    setTimeout(() => process.exit(), PATIENCE).unref();
}

/** Says what went wrong first: it is the reason for the rest. */
function fail(error: unknown): Promise<void> {
    failure ??= report(error);
    return failure;
}

async function report(error: unknown): Promise<void> {
    if (!(error instanceof commander.CommanderError)) {
        process.exitCode = error instanceof WrongUsage ? WRONG_USAGE : FAILURE;
        const { printError } = await import('./output/errors.ts');
        printError(error, json);
    } else if (error.exitCode !== 0) {
        process.exitCode = WRONG_USAGE;
        if (json) {
            const message = error.code === 'commander.help' ? 'a command is missing' : usageError(error.message);
            process.stderr.write(`${jsonText({ error: { code: 'USAGE', field: null, message } })}\n`);
        }
    }
}

/** The whole command line. Commander's own exits are thrown, so that there is one place that ends the process. */
function commandLine(): Command {
    const loaders = new Map<Command, Entry['load']>();
    const program = new commander.Command('scanwire')
        .description("Puts a server's scan data on the wire: REST API, signed webhooks, HTTPS scan records.")
        .version(VERSION)
        .exitOverride()
        // With --json wrong usage goes out as JSON: it is in the error as well.
        .configureOutput({ outputError: (text, write) => write(`scanwire: ${usageError(text)}\n`), ...(json && { writeErr: () => {} }) })
        .helpCommand(false)
        .showHelpAfterError(false)
        .enablePositionalOptions()
        .hook('preSubcommand', async (_, self) => (await loaders.get(self)?.())?.define(self));

    for (const { usage, description, isGroup, load } of COMMANDS) {
        const self = program.command(usage).description(description).helpCommand(false);
        loaders.set(self, load);
        if (!isGroup) {
            withCommonOptions(self);
        }
    }

    return program;
}
