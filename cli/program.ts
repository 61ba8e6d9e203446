import type { Command } from 'commander';
import { VERSION } from '../lib/version.ts';
import { commander, withCommonOptions } from './command.ts';

/** A module of `commands/`. */
interface CommandModule {
    /** Completes the command, whose name, arguments and description are known: its options and its action, or the commands below it. */
    define(self: Command): void;
}

interface Entry {
    /** Name and arguments, as commander writes them. */
    readonly usage: string;
    readonly description: string;
    /** Has commands below it and does nothing itself. */
    readonly isGroup?: true;
    /** A command must answer quickly, so that only the module of the one that was typed is loaded. */
    load(): Promise<CommandModule>;
}

const COMMANDS: readonly Entry[] = [
    {
        usage: 'serve',
        description: 'run the server: REST API, exporters, one worker',
        load: () => import('./commands/serve.ts'),
    },
    {
        usage: 'worker',
        description: 'send for collectors; needs DATABASE_URL and REDIS_URL',
        load: () => import('./commands/worker.ts'),
    },
    {
        usage: 'import <file>',
        description: 'import a scan: nmap XML or JSON lines of hosts, - for stdin',
        load: () => import('./commands/import.ts'),
    },
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
    { usage: 'records', description: 'HTTPS scan records', isGroup: true, load: () => import('./commands/records.ts') },
    { usage: 'license', description: 'licence of the REST API', isGroup: true, load: () => import('./commands/license.ts') },
    { usage: 'migrate', description: 'bring the database up to this version', load: () => import('./commands/migrate.ts') },
    {
        usage: 'listen',
        description: 'receive messages, verify their signatures and print them',
        load: () => import('./commands/listen.ts'),
    },
];

/**
 * The whole command line. Commander's own exits are thrown, so that there is one place that ends the process.
 *
 * @param quiet Writes nothing to stderr: what commander would say is in its error as well.
 */
export function commandLine({ quiet = false }: { readonly quiet?: boolean } = {}): Command {
    const program = new commander.Command('scanwire')
        .description("Puts a server's scan data on the wire: REST API, signed webhooks, HTTPS scan records.")
        .version(VERSION)
        .exitOverride()
        .configureOutput({ outputError: (text, write) => write(`scanwire: ${usageError(text)}\n`), ...(quiet && { writeErr: () => {} }) })
        .helpCommand(false)
        .showHelpAfterError(false)
        .enablePositionalOptions()
        .hook('preSubcommand', (_, self) => complete(self));

    for (const { usage, description, isGroup } of COMMANDS) {
        const self = program.command(usage).description(description).helpCommand(false);
        if (!isGroup) {
            withCommonOptions(self);
        }
    }

    return program;
}

/** Loads what a command of {@link commandLine} does. */
export async function complete(self: Command): Promise<void> {
    const entry = COMMANDS.find(({ usage }) => usage.split(' ')[0] === self.name());
    (await entry?.load())?.define(self);
}

/** What is wrong with the usage, in one line. */
export function usageError(text: string): string {
    return text
        .replace(/^error: /, '')
        .trim()
        .replaceAll('\n', ' ');
}
