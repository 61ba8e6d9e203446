import type { Command, Option } from 'commander';
import { spanText } from '../../lib/span.ts';
import type { AuthenticationPart } from '../../lib/webhooks/exporters/authentication.ts';
import type { Exporter, ExporterSettings, NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import type { Backlog, BacklogAge, ShownExporter } from '../../lib/webhooks/exporters/exporter-health.ts';
import type { ExporterChanges } from '../../lib/webhooks/exporters/exporter-patch.ts';
import {
    PLAIN_SETTINGS,
    type PlainSetting,
    type PlainSettings,
    plainText,
    SETTING_NAMES,
    type SettingName,
    SHOWN_TOGETHER,
} from '../../lib/webhooks/exporters/plain-settings.ts';
import type { ReceiverWarning } from '../../lib/webhooks/exporters/receiver-url.ts';
import { EXPORT_TYPES, MAX_DELAY, RULE_SETS, type RuleSet } from '../../lib/webhooks/setting-values.ts';
import type { Output } from '../../plugins/admin-console/operations.ts';
import { addAuthentication, authenticationOf } from '../authentication-input.ts';
import { type Answer, type Call, command, commander, definedFields } from '../command.ts';
import { addConfig, repeated, span, spans, wholeNumber } from '../option-values.ts';
import { WrongUsage } from '../output/errors.ts';
import { aligned, countText, relativeTime, table, utcTime } from '../output/table.ts';
import { addHeaders, addSecret, addUrl, assertOneStdin, headersOf, hiddenText, notNull, secretOf, urlOf } from '../secret-input.ts';

export function define(exporters: Command): void {
    const create = command(exporters, 'create', 'configure a receiver', created);
    addSettings(create, true)
        .option('--owner <owner>', 'whose it is: gets events of this owner only')
        .option('--legacy', 'dates from before the detection rules library: has the legacy export types')
        .option('--start', 'start it at once');
    addConfig(create);

    command(exporters, 'list', 'list all exporters', listed).option('--owner <owner>', 'only those of this owner');

    command(exporters, 'show <id>', 'show one and how it fares', async ({ args: [id = ''], options, perform }) =>
        shownAnswer(await perform('showExporter', { id, showUrl: options.showUrl === true })),
    ).option('--show-url', 'the whole URL, which may hold a token');

    const update = command(exporters, 'update <id>', 'change settings and send a test event', updated);
    addSettings(update, false)
        .option('--no-header', 'drop all additional headers')
        .option('--owner <owner>', 'whose it is from then on; only while nothing but tests is kept of what it was sent')
        .option('--no-owner', "make it the deployment's: gets events of all")
        .option('--overlap <span>', 'how long the former secret goes on signing, such as 2h, 0 for not at all (default: 1d)', span)
        .option('--keep-headers', 'send headers and credentials although the new URL leads elsewhere, or the proxy can read them now')
        .addOption(update.createOption('--type <type>', 'export type').choices(EXPORT_TYPES))
        .option('--start', 'start it as well');
    addConfig(update);

    const start = command(exporters, 'start <id>', 'start it and send a test event', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('startExporter', { id })),
    );
    addConfig(start);

    const stop = command(exporters, 'stop <id>', 'stop it; what was accepted waits', async ({ args: [id = ''], perform }) =>
        exporterAnswer(await perform('stopExporter', { id })),
    );
    addConfig(stop);

    command(exporters, 'pause <id>', 'send it nothing; what is accepted waits', async ({ args: [id = ''], perform }) =>
        plainAnswer(await perform('pauseExporter', { id })),
    );

    command(exporters, 'resume <id>', 'send it what waits', async ({ args: [id = ''], perform }) =>
        plainAnswer(await perform('resumeExporter', { id })),
    );

    const test = command(exporters, 'test <id>', 'send a test event and wait for its outcome', async ({ args: [id = ''], perform }) => {
        const test = await perform('testExporter', { id });
        const { isDelivered, testText } = await testResult();
        return { json: test, text: () => sentence(testText(test)), failed: !isDelivered(test) };
    });
    addConfig(test);

    const explain = command(exporters, 'explain <id>', 'say whether it gets an event, and why not', explained);
    addEvent(explain)
        .option('--owner <owner>', "whose event it is; the deployment's own otherwise")
        .addOption(explain.createOption('--rules <set>', 'rule set that raised the investigation').choices(RULE_SETS));
    addConfig(explain);

    const preview = command(exporters, 'preview <id>', 'print what would be sent of an event, secrets masked', previewed);
    addConfig(addEvent(preview, '; test needs none'));

    command(exporters, 'remove <id>', 'remove it with its secrets', async ({ args: [id = ''], perform }) => {
        const removed = await perform('removeExporter', { id });
        return { json: removed, text: () => `Removed ${removed.id}` };
    });
}

function addSettings(target: Command, creating: boolean): Command {
    addAuthentication(addHeaders(addSecret(addUrl(target, creating), creating ? 'signing secret' : 'new signing secret')), !creating);
    for (const setting of Object.values(PLAIN_SETTINGS)) {
        target.addOption(settingOption(setting));
        if (setting.without !== undefined && (!creating || setting.byDefault === true)) {
            target.option(setting.flag.replace(/^--([\w-]+).*/, '--no-$1'), setting.without);
        }
    }
    target.option('--schedule <spans>', 'delays before each further try, with commas between them, such as 5s,30s,2m', spans(MAX_DELAY));
    if (!creating) {
        target.option('--no-schedule', 'the default delays');
    }
    return target
        .option('--format-secret-file <file>', 'what the format needs and nobody may see, read from a file, - for stdin')
        .option('--format-secret-env <variable>', 'the same, taken from an environment variable');
}

/** The flag of a plain setting. */
function settingOption(setting: PlainSetting): Option {
    const option = (more = ''): Option => new commander.Option(setting.flag, `${setting.about}${more}`);
    switch (setting.as) {
        case 'number':
            return option().argParser(wholeNumber(setting.min, setting.max, setting.unit));
        case 'choice':
            return option().choices(setting.of);
        case 'choices':
            return option(`: ${setting.of.join(', ')}; repeatable`).argParser(repeated);
        case 'names':
            return option('; with commas between them').argParser(namesOf);
        case 'json':
            return option(', read from a JSON file, - for stdin');
        default:
            return option();
    }
}

/** The plain settings that flags name. */
async function plainSettingsOf(options: Call['options']): Promise<Partial<PlainSettings>> {
    const given = SETTING_NAMES.map(async (name) => [name, await settingGiven(PLAIN_SETTINGS[name], options)] as const);
    return definedFields<PlainSettings>(Object.fromEntries(await Promise.all(given)) as Record<SettingName, unknown>);
}

/** What the flag of a plain setting says; undefined where it was not given. */
async function settingGiven(setting: PlainSetting, options: Call['options']): Promise<unknown> {
    const name = settingOption(setting).attributeName();
    const given = options[name];
    const isDropped = given === false && setting.byDefault === null;
    return isDropped ? null : setting.as === 'json' && given !== undefined ? notNull(name, await jsonOfFile(String(given))) : given;
}

/** `a, b` as `['a', 'b']`. */
function namesOf(text: string): readonly string[] {
    return text.split(',').map((name) => name.trim());
}

/** @param unless Of which events no body has to be given; null for none. */
function addEvent(target: Command, unless: string | null = null): Command {
    const body = target.createOption('--body <file>', `of the event, read from a JSON file, - for stdin${unless ?? ''}`);
    return target
        .addOption(target.createOption('--kind <kind>', 'of the event').makeOptionMandatory())
        .addOption(body.makeOptionMandatory(unless === null));
}

async function jsonOfFile(path: string): Promise<unknown> {
    const { readJson } = await import('../input-file.ts');
    return await readJson(path);
}

async function explained({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { kind, body, rules, owner } = options;
    const about = definedFields<{ rules: RuleSet; owner: string }>({ rules, owner });
    const choice = await perform('explainExporter', { id, kind: String(kind), body: await jsonOfFile(String(body)), ...about });
    return { json: choice, text: () => (choice.wanted ? 'It gets this event' : `It does not get this event: ${choice.reason}`) };
}

async function previewed({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { kind, body } = options;
    if (body === undefined && kind !== 'test') {
        throw new WrongUsage('Give the event with --body FILE: only a test needs none', 'body');
    }

    const given = body === undefined ? {} : { body: await jsonOfFile(String(body)) };
    const preview = await perform('previewExporter', { id, kind: String(kind), ...given });
    // Loaded here: no other command needs it.
    const { SENDER_HEADERS } = await import('../../lib/webhooks/messages/message-headers.ts');
    // What is not known before there is a connection, and a trace.
    const later = `(added as it is sent: ${SENDER_HEADERS.join(', ')}; and traceparent, where traces are sent on)`;
    return { json: preview, text: () => [...preview.headers.map((pair) => pair.join(': ')), later, '', preview.body].join('\n') };
}

async function created({ options, perform }: Call): Promise<Answer> {
    const { owner, legacy } = options;
    const settings = { ...(await settingsOf(options)), ...definedFields({ owner, legacy }) } as NewExporterSettings;
    const exporter = await perform('createExporter', { ...settings, start: options.start === true });
    return exporterAnswer(exporter, [['Secret', exporter.secret]]);
}

async function updated({ args: [id = ''], options, perform }: Call): Promise<Answer> {
    const { type, keepHeaders, overlap, owner: given } = options;
    const owner = given === false ? null : given;
    const changes = { ...(await settingsOf(options)), ...definedFields({ type, owner, keepHeaders, overlap }) } as ExporterChanges;
    if (Object.keys(changes).length === 0) {
        throw new WrongUsage('Nothing to change: give at least one setting, for example --url');
    }

    return exporterAnswer(await perform('updateExporter', { ...changes, id, start: options.start === true }));
}

async function listed({ options: { owner }, perform }: Call): Promise<Answer> {
    const all = await perform('listExporters', definedFields<{ owner: string }>({ owner }));
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
                owner === undefined ? 'No exporters. Make one with: scanwire exporters create --url URL' : 'No exporters of this owner.',
            ),
    };
}

async function settingsOf(options: Call['options']): Promise<Partial<ExporterSettings>> {
    assertOneStdin(options);
    const settings = definedFields<Omit<ExporterSettings, SettingName | AuthenticationPart>>({
        url: await urlOf(options),
        secret: await secretOf(options),
        headers: await headersOf(options),
        schedule: options.schedule === false ? null : options.schedule,
        formatSecret: (await hiddenText('formatSecret', options))?.trim(),
    });
    return { ...settings, ...(await plainSettingsOf(options)), ...(await authenticationOf(options)) };
}

function plainAnswer(exporter: Exporter): Answer {
    return { json: exporter, text: () => factsText(exporterFacts(exporter)) };
}

function shownAnswer(exporter: ShownExporter): Answer {
    return { json: exporter, text: () => factsText([...exporterFacts(exporter), ...healthFacts(exporter)]) };
}

/** What is known of an exporter after a change; of some there is more. */
type Changed = Omit<Output<'createExporter'>, 'secret'>;

async function exporterAnswer(exporter: Changed, more: readonly Fact[] = []): Promise<Answer> {
    const { test, warnings } = exporter;
    const outcome = test === undefined ? '' : sentence((await testResult()).testText(test)).replace(/^Test /, '');
    const facts = () => [...exporterFacts(exporter, [...more, ...heldFacts(exporter)]), ['Test', outcome] as const];
    return { json: exporter, text: () => factsText([...facts(), ...warnings.map(warningFact)]) };
}

/** Loaded by those that have one to say. */
const testResult = () => import('../output/test-result.ts');

/** What was held for it, and how to send that. */
function heldFacts({ id, held }: Changed): readonly Fact[] {
    return held === undefined || held.count === 0
        ? []
        : [['Held', `${countText(held)}; to send them: scanwire deliveries replay --exporter ${id} --held`]];
}

function warningFact({ message }: ReceiverWarning): Fact {
    return ['Warning', message];
}

type Fact = readonly [name: string, value: string];

function settingFact(name: SettingName, exporter: Exporter): Fact {
    const setting: PlainSetting = PLAIN_SETTINGS[name];
    const text = plainText(name, exporter);
    return [titleOf(name), text !== '' && setting.as === 'number' ? `${text}${setting.unit ?? ''}` : text];
}

/** `After exhausted` for `afterExhausted`. */
function titleOf(setting: SettingName): string {
    return sentence(setting.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`));
}

/** Those that have a value. */
function factsText(facts: readonly Fact[]): Promise<string> {
    return aligned(facts.filter(([, value]) => value !== ''));
}

function exporterFacts(exporter: Exporter, more: readonly Fact[] = []): readonly Fact[] {
    const { id, name, url, type, owner, headerNames, authentication, schedule = [] } = exporter;
    const plain = (...names: readonly SettingName[]): readonly Fact[] => names.map((each) => settingFact(each, exporter));
    return [
        ['Id', id],
        ['Name', name],
        ['URL', url],
        ...more,
        ['State', exporter.stopReason === null ? exporter.state : `${exporter.state}: ${exporter.stopReason}`],
        ['Paused', exporter.pausedAt === null ? '' : `since ${utcTime(exporter.pausedAt)}`],
        ...plain('collector', ...SHOWN_TOGETHER),
        ['Schedule', schedule.map(spanText).join(', ')],
        ['Ordered', exporter.ordered ? `by order key; after one that failed for good: ${exporter.afterExhausted}` : ''],
        ['Type', type],
        ['Owner', owner ?? ''],
        ...plain('kinds', 'filter', 'format', 'trust', 'signatures'),
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
