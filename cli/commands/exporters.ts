import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import type { AuthenticationPart } from '../../lib/webhooks/exporters/authentication.ts';
import type { Exporter, ExporterSettings, NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import type { Backlog, BacklogAge, ShownExporter } from '../../lib/webhooks/exporters/exporter-health.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import type { ReceiverWarning } from '../../lib/webhooks/exporters/receiver-url.ts';
import {
    AFTER_EXHAUSTED,
    EXPORT_TYPES,
    RULE_SETS,
    type RuleSet,
    SIGNATURE_FORMS,
    TRUST_SETTINGS,
} from '../../lib/webhooks/setting-values.ts';
import type { TestView, WarnedExporter } from '../../plugins/admin-console/operations.ts';
import { addAuthentication, authenticationOf } from '../authentication-input.ts';
import { type Answer, type Call, command, definedFields } from '../command.ts';
import { readJson } from '../input-file.ts';
import { perSecond, repeated, span } from '../option-values.ts';
import { aligned, countText, relativeTime, table, utcTime } from '../output/table.ts';
import { isDelivered, testText } from '../output/test-result.ts';
import { addHeaders, addSecret, addUrl, assertOneStdin, headersOf, hiddenText, secretOf, urlOf } from '../secret-input.ts';

export function define(exporters: Command): void {
    const create = command(exporters, 'create', 'configure a receiver', created);
    addSettings(create, true)
        .option('--owner <owner>', 'whose it is: gets events of this owner only')
        .option('--legacy', 'dates from before the detection rules library: has the legacy export types')
        .option('--start', 'start it at once');

    command(exporters, 'list', 'list all exporters', listed);

    command(exporters, 'show <id>', 'show one and how it fares', async ({ args: [id = ''], options, perform }) =>
        shownAnswer(await perform('showExporter', { id, showUrl: options.showUrl === true })),
    ).option('--show-url', 'the whole URL, which may hold a token');

    const update = command(exporters, 'update <id>', 'change settings and send a test event', updated);
    addSettings(update, false)
        .option('--no-header', 'drop all additional headers')
        .option('--overlap <span>', 'how long the former secret goes on signing, such as 2h, 0 for not at all (default: 1d)', span)
        .option('--keep-headers', 'send headers and credentials to the new URL although it leads elsewhere')
        .addOption(update.createOption('--type <type>', 'export type').choices(EXPORT_TYPES))
        .option('--no-rate', 'as many attempts a second as it takes')
        .option('--no-ordered', 'events of an order key go without waiting for each other')
        .option('--start', 'start it as well');

    command(exporters, 'start <id>', 'start it and send a test event', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('startExporter', { id }), await heldFacts(id, perform)),
    );

    command(exporters, 'stop <id>', 'stop it; what was accepted waits', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('stopExporter', { id })),
    );

    command(exporters, 'pause <id>', 'send it nothing; what is accepted waits', async ({ args: [id = ''], perform }) =>
        plainAnswer(await perform('pauseExporter', { id })),
    );

    command(exporters, 'resume <id>', 'send it what waits', async ({ args: [id = ''], perform }) =>
        plainAnswer(await perform('resumeExporter', { id })),
    );

    command(exporters, 'test <id>', 'send a test event and wait for its outcome', async ({ args: [id = ''], perform }) => {
        const test = await perform('testExporter', { id });
        return { json: test, text: () => sentence(testText(test)), failed: !isDelivered(test) };
    });

    const explain = command(exporters, 'explain <id>', 'say whether it gets an event, and why not', explained);
    addEvent(explain)
        .option('--owner <owner>', "whose event it is; the deployment's own otherwise")
        .addOption(explain.createOption('--rules <set>', 'rule set that raised the investigation').choices(RULE_SETS));

    addEvent(command(exporters, 'preview <id>', 'print what would be sent of an event, secrets masked', previewed));

    command(exporters, 'remove <id>', 'remove it with its secrets', async ({ args: [id = ''], perform }) => {
        const removed = await perform('removeExporter', { id });
        return { json: removed, text: () => `Removed ${removed.id}` };
    });
}

function addSettings(target: Command, creating: boolean): Command {
    const trust = target.createOption('--trust <trust>', "trust in the receiver's certificate");
    const afterExhausted = target.createOption(
        '--after-exhausted <what>',
        'what becomes of those after one of their key that failed for good',
    );
    addUrl(target, creating).option('--name <name>', 'goes out as webhook_name');
    return addAuthentication(addHeaders(addSecret(target, creating ? 'signing secret' : 'new signing secret')), !creating)
        .option('--kinds <kinds>', 'kinds of events that it gets, with commas; a * at the end for all that begin so', namesOf)
        .option('--filter <file>', 'what the body of an event must be like, read from a JSON file, - for stdin')
        .option('--format <format>', 'what is sent of an event: native, cloudevents, slack …')
        .option('--template <file>', 'document of the format template, read from a JSON file')
        .option('--format-secret-file <file>', 'what the format needs and nobody may see, read from a file, - for stdin')
        .option('--format-secret-env <variable>', 'the same, taken from an environment variable')
        .option('--collector <name>', 'worker pool that sends for it')
        .option('--rate <n/s>', 'the most attempts a second, by all workers together', perSecond)
        .option('--ordered', 'events with the same order key go one after another')
        .addOption(afterExhausted.choices(AFTER_EXHAUSTED))
        .addOption(trust.choices(TRUST_SETTINGS))
        .option('--signature <form>', `${SIGNATURE_FORMS.join(', ')}; repeatable`, repeated);
}

/** `a, b` as `['a', 'b']`. */
function namesOf(text: string): readonly string[] {
    return text.split(',').map((name) => name.trim());
}

function addEvent(target: Command): Command {
    return target
        .addOption(target.createOption('--kind <kind>', 'of the event').makeOptionMandatory())
        .addOption(target.createOption('--body <file>', 'of the event, read from a JSON file, - for stdin').makeOptionMandatory());
}

async function explained({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { kind, body, rules, owner } = options;
    const about = definedFields<{ rules: RuleSet; owner: string }>({ rules, owner });
    const choice = await perform('explainExporter', { id, kind: String(kind), body: await readJson(String(body)), ...about });
    return { json: choice, text: () => (choice.wanted ? 'It gets this event' : `It does not get this event: ${choice.reason}`) };
}

async function previewed({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { kind, body } = options;
    const preview = await perform('previewExporter', { id, kind: String(kind), body: await readJson(String(body)) });
    return { json: preview, text: () => [...preview.headers.map((pair) => pair.join(': ')), '', preview.body].join('\n') };
}

async function created({ options, perform }: Call): Promise<Answer> {
    const { owner, legacy } = options;
    const settings = { ...(await settingsOf(options)), ...definedFields({ owner, legacy }) } as NewExporterSettings;
    const exporter = await perform('createExporter', { ...settings, start: options.start === true });
    return exporterAnswer(exporter, [['Secret', exporter.secret]]);
}

async function updated({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { type, keepHeaders, overlap } = options;
    const changes = { ...(await settingsOf(options)), ...definedFields({ type, keepHeaders, overlap }) } as ExporterChanges;
    if (Object.keys(changes).length === 0) {
        throw new ScanwireError('INVALID_INPUT', 'Nothing to change: give at least one setting, for example --url');
    }

    const changed = await perform('updateExporter', { ...changes, id, start: options.start === true });
    return exporterAnswer(changed, options.start === true ? await heldFacts(id, perform) : []);
}

async function listed({ perform }: Call): Promise<Answer> {
    const all = await perform('listExporters', {});
    return {
        json: all,
        text: () =>
            table(
                ['ID', 'NAME', 'URL', 'COLLECTOR', 'STATE', 'FAILURES', 'CHANGED'],
                all.map(({ id, name, url, collector, state, pausedAt, consecutiveFailures, updatedAt }) => [
                    id,
                    name,
                    url,
                    collector,
                    pausedAt === null ? state : `${state}, paused`,
                    String(consecutiveFailures),
                    relativeTime(updatedAt, new Date()),
                ]),
                'No exporters. Make one with: scanwire exporters create --url URL',
            ),
    };
}

async function settingsOf(options: Call['options']): Promise<Partial<ExporterSettings>> {
    assertOneStdin(options);
    const { name, collector, rate, ordered, afterExhausted, trust, signature, kinds, filter, format, template } = options;
    const settings = definedFields<Omit<ExporterSettings, 'schedule' | AuthenticationPart>>({
        kinds,
        filter: filter === undefined ? undefined : await readJson(String(filter)),
        format,
        template: template === undefined ? undefined : await readJson(String(template)),
        formatSecret: (await hiddenText('formatSecret', options))?.trim(),
        url: await urlOf(options),
        name,
        secret: await secretOf(options),
        headers: await headersOf(options),
        collector,
        rate: rate === false ? null : rate,
        ordered,
        afterExhausted,
        trust,
        signatures: signature,
    });
    return { ...settings, ...(await authenticationOf(options)) };
}

function plainAnswer(exporter: Exporter): Answer {
    return { json: exporter, text: () => factsText(exporterFacts(exporter)) };
}

function shownAnswer(exporter: ShownExporter): Answer {
    return { json: exporter, text: () => factsText([...exporterFacts(exporter), ...healthFacts(exporter)]) };
}

function exporterAnswer(exporter: WarnedExporter & { readonly test?: TestView }, more: readonly Fact[] = []): Answer {
    const { test, warnings } = exporter;
    const outcome = test === undefined ? '' : sentence(testText(test)).replace(/^Test /, '');
    return { json: exporter, text: () => factsText([...exporterFacts(exporter, more), ['Test', outcome], ...warnings.map(warningFact)]) };
}

/** What was held for it, and how to send that. */
async function heldFacts(id: string, perform: Call['perform']): Promise<readonly Fact[]> {
    const held = await perform('countDeliveries', { exporterId: id, state: 'held' });
    return held.count === 0 ? [] : [['Held', `${countText(held)}; to send them: scanwire deliveries replay --exporter ${id} --held`]];
}

function warningFact({ message }: ReceiverWarning): Fact {
    return ['Warning', message];
}

type Fact = readonly [name: string, value: string];

/** Those that have a value. */
function factsText(facts: readonly Fact[]): Promise<string> {
    return aligned(facts.filter(([, value]) => value !== ''));
}

function exporterFacts(exporter: Exporter, more: readonly Fact[] = []): readonly Fact[] {
    const { id, name, url, collector, type, owner, kinds, filter, format, trust, signatures, headerNames, authentication, rate } = exporter;
    return [
        ['Id', id],
        ['Name', name],
        ['URL', url],
        ...more,
        ['State', exporter.stopReason === null ? exporter.state : `${exporter.state}: ${exporter.stopReason}`],
        ['Paused', exporter.pausedAt === null ? '' : `since ${utcTime(exporter.pausedAt)}`],
        ['Collector', collector],
        ['Rate', rate === null ? '' : `${rate}/s`],
        ['Ordered', exporter.ordered ? `by order key; after one that failed for good: ${exporter.afterExhausted}` : ''],
        ['Type', type],
        ['Owner', owner ?? ''],
        ['Kinds', kinds?.join(', ') ?? ''],
        ['Filter', filter === null ? '' : JSON.stringify(filter)],
        ['Format', format],
        ['Trust', trust],
        ['Signatures', signatures.join(', ')],
        ['Headers', headerNames.join(', ')],
        ['Authentication', authentication.join(', ')],
    ];
}

function healthFacts({ consecutiveFailures, health }: ShownExporter): readonly Fact[] {
    const { at, breaker, failingSince, lastOutcome, nextProbe, pausedUntil, stopsAt, inFlight, backlog } = health;
    const time = (when: string | Date | null, prefix: string = ''): string =>
        when === null ? '' : `${prefix}${utcTime(when)} (${relativeTime(when, new Date(at))})`;
    return [
        ['Breaker', breaker],
        ['Failures', consecutiveFailures === 0 ? '0' : `${consecutiveFailures} in a row${time(failingSince, ', failing since ')}`],
        ['Last outcome', lastOutcome === null ? 'none' : `${lastOutcome.code} at ${time(lastOutcome.at)}: ${lastOutcome.detail}`],
        ['Paused until', time(pausedUntil)],
        ['Next probe', time(nextProbe)],
        ['Stops', time(stopsAt, 'at the first failure after ')],
        ['In flight', inFlight.toLocaleString('en')],
        ['Waiting', waitingText(backlog)],
        ['Oldest', time(backlog.oldest)],
    ];
}

const AGE_TEXTS: Readonly<Record<BacklogAge, string>> = {
    minute: 'under 1 min',
    tenMinutes: 'under 10 min',
    hour: 'under 1 h',
    day: 'under 1 day',
    older: 'older',
};

/** `1,234: 200 under 1 min, 1,034 older`. */
function waitingText({ waiting, more, ages }: Backlog): string {
    const counts = Object.entries(AGE_TEXTS).map(([age, text]) => [ages[age as BacklogAge], text] as const);
    const parts = counts.filter(([count]) => count > 0).map(([count, text]) => `${count.toLocaleString('en')} ${text}`);
    return `${countText({ count: waiting, more })}${parts.length === 0 ? '' : `: ${parts.join(', ')}`}`;
}

function sentence(text: string): string {
    return `${text.charAt(0).toUpperCase()}${text.slice(1)}`;
}
