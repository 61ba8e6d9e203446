import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import { EXPORT_TYPES, SIGNATURE_FORMS, TRUST_SETTINGS } from '../../lib/webhooks/choices.ts';
import type { Exporter, ExporterChanges, ExporterSettings, HeaderPairs, NewExporterSettings } from '../../lib/webhooks/exporter.ts';
import type { TestView } from '../../plugins/admin-console/operations.ts';
import { type Answer, type Call, command, definedFields, repeated } from '../command.ts';
import { aligned, displayUrl, relativeTime, table } from '../output/table.ts';
import { isDelivered, testText } from '../output/test-result.ts';

export function define(exporters: Command): void {
    const create = command(exporters, 'create', 'configure a receiver', created);
    addSettings(create, true)
        .option('--legacy', 'dates from before the detection rules library: has the legacy export types')
        .option('--start', 'start it at once');

    command(exporters, 'list', 'list all exporters', listed);

    command(exporters, 'show <id>', 'show one', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('showExporter', { id })),
    );

    const update = command(exporters, 'update <id>', 'change settings and send a test event', updated);
    addSettings(update, false)
        .option('--no-header', 'drop all additional headers')
        .addOption(update.createOption('--type <type>', 'export type').choices(EXPORT_TYPES))
        .option('--start', 'start it as well');

    command(exporters, 'start <id>', 'start it and send a test event', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('startExporter', { id })),
    );

    command(exporters, 'stop <id>', 'stop it; what was accepted waits', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('stopExporter', { id })),
    );

    command(exporters, 'test <id>', 'send a test event and wait for its outcome', async ({ args: [id = ''], perform }) => {
        const test = await perform('testExporter', { id });
        return { json: test, text: () => sentence(testText(test)), failed: !isDelivered(test) };
    });

    command(exporters, 'remove <id>', 'remove it with its secrets', async ({ args: [id = ''], perform }) => {
        const removed = await perform('removeExporter', { id });
        return { json: removed, text: () => `Removed ${removed.id}` };
    });
}

function addSettings(target: Command, creating: boolean): Command {
    const url = target.createOption('--url <url>', 'where to POST, http or https');
    const trust = target.createOption('--trust <trust>', "trust in the receiver's certificate");
    return target
        .addOption(creating ? url.makeOptionMandatory() : url)
        .option('--name <name>', 'goes out as webhook_name')
        .option('--secret <secret>', creating ? 'signing secret; made when absent' : 'new signing secret')
        .option('--header <header>', 'additional header as "Name: value", repeatable', repeated)
        .option('--collector <name>', 'worker pool that sends for it')
        .addOption(trust.choices(TRUST_SETTINGS))
        .option('--signature <form>', `${SIGNATURE_FORMS.join(', ')}; repeatable`, repeated);
}

async function created({ options, perform }: Call): Promise<Answer> {
    const settings = { ...settingsOf(options), ...(options.legacy === true && { legacy: true }) } as NewExporterSettings;
    const exporter = await perform('createExporter', { ...settings, start: options.start === true });
    return exporterAnswer(exporter, [['Secret', exporter.secret]]);
}

async function updated({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const changes = { ...settingsOf(options), ...(options.type !== undefined && { type: options.type }) } as ExporterChanges;
    if (Object.keys(changes).length === 0) {
        throw new ScanwireError('INVALID_INPUT', 'Nothing to change: give at least one setting, for example --url');
    }

    return exporterAnswer(await perform('updateExporter', { ...changes, id, start: options.start === true }));
}

async function listed({ perform }: Call): Promise<Answer> {
    const all = await perform('listExporters', {});
    return {
        json: all,
        text: () =>
            table(
                ['ID', 'NAME', 'URL', 'COLLECTOR', 'STATE', 'FAILURES', 'CHANGED'],
                all.map(({ id, name, url, collector, state, consecutiveFailures, updatedAt }) => [
                    id,
                    name,
                    displayUrl(url),
                    collector,
                    state,
                    String(consecutiveFailures),
                    relativeTime(updatedAt, new Date()),
                ]),
                'No exporters. Make one with: scanwire exporters create --url URL',
            ),
    };
}

function settingsOf(options: Call['options']): Partial<ExporterSettings> {
    const { url, name, secret, header, collector, trust, signature } = options;
    return definedFields<Omit<ExporterSettings, 'schedule'>>({
        url,
        name,
        secret,
        headers: headersOf(header),
        collector,
        trust,
        signatures: signature,
    });
}

/** Not parsed by the option itself: its message would hold the header, and with it a secret. */
function headersOf(header: unknown): HeaderPairs | undefined {
    if (header === undefined || header === true) {
        return undefined;
    }

    return header === false ? [] : (header as readonly string[]).map(headerPair);
}

function headerPair(text: string): readonly [string, string] {
    const colon = text.indexOf(':');
    if (colon < 1) {
        throw new ScanwireError('INVALID_INPUT', 'A header must have the form "Name: value"', { field: 'header' });
    }

    return [text.slice(0, colon).trim(), text.slice(colon + 1).trim()];
}

function exporterAnswer(exporter: Exporter & { readonly test?: TestView }, more: readonly (readonly [string, string])[] = []): Answer {
    const { id, name, url, collector, type, trust, signatures, headerNames, state, stopReason, test } = exporter;
    const pairs: readonly (readonly [string, string])[] = [
        ['Id', id],
        ['Name', name],
        ['URL', displayUrl(url)],
        ...more,
        ['State', stopReason === null ? state : `${state}: ${stopReason}`],
        ['Collector', collector],
        ['Type', type],
        ['Trust', trust],
        ['Signatures', signatures.join(', ')],
        ['Headers', headerNames.join(', ')],
        ['Test', test === undefined ? '' : sentence(testText(test)).replace(/^Test /, '')],
    ];
    return { json: exporter, text: () => aligned(pairs.filter(([, value]) => value !== '')) };
}

function sentence(text: string): string {
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
