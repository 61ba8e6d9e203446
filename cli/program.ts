import { Command } from 'commander';
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
export function usageError(text: string): string {
    return text
        .replace(/^error: /, '')
        .trim()
        .replaceAll('\n', ' ');
}
