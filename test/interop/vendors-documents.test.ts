/*
 * What makers of scanners and receivers publish: their samples are imported, their schemas hold what goes out. `VENDOR_DOCUMENTS` names a folder
 * with git directories of their repositories, `owner/name` each; read is what was read when this was written, so a clone needs its history.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Ajv } from 'ajv';
import t from 'tap';
import { readScan } from '../../lib/inventory/scan-files/read-scan.ts';
import { bytes } from '../lib/inventory/scan-files/scan-source.ts';
import { eventOf, fullInvestigation, made, smallInvestigation, testBody } from '../lib/webhooks/formats/events.ts';
import { collect } from '../support/collect.ts';
import { brokenRules, PAGERDUTY_RULES, SENTINEL_RULES, SPLUNK_RULES } from '../support/vendor-rules.ts';

const folder = process.env.VENDOR_DOCUMENTS ?? '';

const COMMITS: Readonly<Record<string, string>> = {
    'MicrosoftDocs/azure-monitor-docs': '00b6c3e55bc26f9dc4ee0608d781965cf407cc22',
    'PagerDuty/developer-docs': '94224391aa3eac8fa73ea6a6af542dee0613d3e8',
    'cloudevents/spec': 'c2845a49bc9831be02f305a4a792401b932d77d4',
    'microsoft/AdaptiveCards': '644d933e185a8482c4dcf4c375d177aac37fd095',
    'projectdiscovery/naabu': 'cd8b974b8938c098d6c30edfe528291e13f5c163',
    'slackapi/node-slack-sdk': '4322e14f116ac7551073767c533b9aca77fd9552',
    'splunk/splunk-library-javalogging': '70f80fa60d2098e81f5f819059964d9304b5f1d5',
    'tenable/pyTenable': '0ee40a198e2f5de607649873a680c67ef910b1b9',
    'zmap/zgrab2': 'e8fbc9eff2304403c3c574af3d6b65abfc2032b3',
};

function git(repository: string, ...words: readonly string[]): string {
    return execFileSync('git', ['-C', join(folder, repository), ...words], { encoding: 'utf8', maxBuffer: 1e8 });
}

const fileOf = (repository: string, path: string): string => git(repository, 'show', `${COMMITS[repository]}:${path}`);
const scanOf = (text: string) => collect(readScan(bytes(text)));
const linesOf = (text: string, start: string): string =>
    text
        .split('\n')
        .filter((line) => line.startsWith(start))
        .join('\n');

/** Checks by a schema of somebody's, whose name for itself is not needed. */
function schemaOf(repository: string, path: string): (value: unknown) => boolean {
    const { $schema: _, id: __, ...schema } = JSON.parse(fileOf(repository, path)) as Readonly<Record<string, unknown>>;
    const ajv = new Ajv({ strict: false });
    for (const format of ['uri', 'uri-reference', 'date-time']) {
        ajv.addFormat(format, true);
    }
    return ajv.compile(schema);
}

/** Whether Slack's own types take the blocks and texts, as literals: then they have no field that the types have not. */
function areOfSlack(folder: string, messages: readonly unknown[]): boolean {
    const paths = git(
        'slackapi/node-slack-sdk',
        'ls-tree',
        '-r',
        '--name-only',
        COMMITS['slackapi/node-slack-sdk'] ?? '',
        'packages/types/src/',
    );
    for (const path of paths.trim().split('\n')) {
        mkdirSync(join(folder, dirname(path)), { recursive: true });
        writeFileSync(join(folder, path), fileOf('slackapi/node-slack-sdk', path));
    }

    const program = join(folder, 'messages.ts');
    const type = 'readonly { readonly text: string; readonly blocks?: readonly KnownBlock[] }[]';
    writeFileSync(
        program,
        `import type { KnownBlock } from './packages/types/src/index';\nexport const messages: ${type} = ${JSON.stringify(messages)};\n`,
    );
    const options = [
        '--noEmit',
        '--strict',
        '--skipLibCheck',
        '--module',
        'esnext',
        '--moduleResolution',
        'bundler',
        '--types',
        '',
        '--ignoreConfig',
    ];
    const { status, stdout } = spawnSync('npx', ['tsc', ...options, program], { encoding: 'utf8' });
    const others = stdout.split('\n').filter((line) => line.includes('error TS') && !line.includes('messages.ts('));
    if (others.length > 0) {
        throw new Error(`Slack's types cannot be compiled: ${others.join('\n')}`);
    }
    return status === 0;
}

/** The names of the columns that a document of Azure's reserves, and how long one may be. */
function columnRules(text: string): { readonly reserved: readonly string[]; readonly longest: number } {
    const [, longest = '', reserved = ''] =
        /up to (\d+) alphanumeric characters and underscores \(`_`\)\. (.*?) are reserved/.exec(text) ?? [];
    return { reserved: [...reserved.matchAll(/`(\w+)`/g)].map(([, name = '']) => name), longest: Number(longest) };
}

const messagesOf = (format: string) =>
    [
        eventOf(fullInvestigation),
        eventOf(smallInvestigation),
        eventOf(testBody, 'test'),
        eventOf({ hosts: 3, severity: 'high' }, 'scan.finished'),
        eventOf({}, 'nothing'),
    ].map((event) => JSON.parse(made(format, event).body.toString()));

t.test(
    "vendors' own samples are imported, and their schemas take what goes out",
    { skip: folder === '' && 'VENDOR_DOCUMENTS names no folder' },
    async (t) => {
        const ports = (await scanOf(linesOf(fileOf('projectdiscovery/naabu', 'README.md'), '{"ip":'))).map(({ services }) => services);
        t.strictSame(ports, [[{ port: 443, proto: 'tcp', state: 'open' }], [{ port: 80, proto: 'tcp', state: 'open' }]], 'naabu');

        const line = linesOf(fileOf('zmap/zgrab2', 'README.md'), '{"ip":');
        const service = { port: 123, proto: 'udp', state: 'open', name: 'ntp', info: null };
        t.match(await scanOf(line), [{ address: JSON.parse(line).ip, name: JSON.parse(line).domain, services: [service] }], 'zgrab2');
        const old = git('zmap/zgrab2', 'ls-tree', '-r', '--name-only', COMMITS['zmap/zgrab2'] ?? '', 'zgrab2_schemas/zgrab2/testdata/');
        for (const path of old.split('\n').filter((name) => name.endsWith('.json') && !name.includes('redis'))) {
            t.match(await scanOf(fileOf('zmap/zgrab2', path)), [{ state: 'alive', name: 'target' }], path);
        }

        const report = fileOf('tenable/pyTenable', 'tests/reports/test_files/example.nessus');
        const [address, name, mac, os_name] = ['host-ip', 'host-fqdn', 'mac-address', 'operating-system'].map(
            (tag) => report.split(`<tag name="${tag}">`)[1]?.split('<')[0],
        );
        const [agent] = await scanOf(report);
        t.match(agent, { address, name, mac, os_name });
        t.strictSame([agent?.services?.length, agent?.notes?.length, agent?.vulns?.length], [19, 135, 95], 'all 230 items of the report');

        const shown = fileOf('PagerDuty/developer-docs', 'docs/events-API-v2/02-Trigger-Events.md');
        const samples = [...shown.matchAll(/```json\n(?:\/\*.*?\*\/\n)?(.*?)```/gs)].map(([, json = '']) => ({
            ...JSON.parse(json),
            routing_key: 'R'.repeat(32),
        }));
        t.strictSame(
            samples.map((sample) => brokenRules(PAGERDUTY_RULES, sample)),
            [[], [], []],
            'PagerDuty',
        );

        const [slack, typed] = [messagesOf('slack'), t.testdir()];
        t.ok(areOfSlack(typed, slack), "Slack's types");
        t.notOk(areOfSlack(typed, [{ text: 'a', blocks: [{ type: 'header', text: { type: 'mrkdwn', text: 'a' } }] }]), 'and no other');
        t.notOk(
            areOfSlack(typed, [{ text: 'a', blocks: [{ type: 'section', text: { type: 'mrkdwn', text: 'a' }, other: 1 }] }]),
            'nor more',
        );

        const tags = fileOf('splunk/splunk-library-javalogging', 'src/main/java/com/splunk/logging/hec/MetadataTags.java');
        const [, named = ''] = /HEC_TAGS =\s+new HashSet<>\(Arrays\.asList\((.*?)\)/s.exec(tags) ?? [];
        const known = [...named.matchAll(/\w+/g)].map(([name]) => new RegExp(`${name} = "(\\w+)"`).exec(tags)?.[1]);
        t.strictSame(
            new Set(Object.keys(SPLUNK_RULES.properties as object)),
            new Set([...known, 'event', 'fields']),
            "Splunk's metadata, and what its serializer has beside it",
        );
        t.strictSame(
            messagesOf('splunk-hec').flatMap((message) => brokenRules(SPLUNK_RULES, message)),
            [],
            'Splunk',
        );

        const page = 'articles/azure-monitor/logs/logs-ingestion-api-overview.md';
        const { reserved, longest } = columnRules(fileOf('MicrosoftDocs/azure-monitor-docs', page));
        const rowOf = (name: string) => [{ TimeGenerated: '2026-11-28T10:00:00Z', [name]: 'a' }];
        t.strictSame(
            [...reserved, 'a'.repeat(longest + 1), 'a'.repeat(longest), 'Other'].map(
                (name) => brokenRules(SENTINEL_RULES, rowOf(name)).length > 0,
            ),
            [...reserved.map(() => true), true, false, false],
            `the rules of Azure's columns: ${reserved.length} reserved`,
        );
        t.equal(reserved.length, 7);
        t.strictSame(
            messagesOf('sentinel').flatMap((message) => brokenRules(SENTINEL_RULES, message)),
            [],
            'Sentinel',
        );

        const isCard = schemaOf('microsoft/AdaptiveCards', 'schemas/1.2.1/adaptive-card.json');
        t.ok(
            messagesOf('teams').every(({ attachments: [{ content }] }) => isCard(content)),
            'cards',
        );
        t.notOk(isCard({ type: 'AdaptiveCard', version: '1.2', body: [{ type: 'RichTextBlock' }] }), 'and no other');
        const isEvent = schemaOf('cloudevents/spec', 'cloudevents/formats/cloudevents.json');
        t.ok(messagesOf('cloudevents').every(isEvent), 'CloudEvents');
        t.notOk(isEvent({ specversion: '1.0' }), 'and no other');
    },
);
