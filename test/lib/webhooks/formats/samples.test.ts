/* What goes out beside what makers of receivers show. Sources and dates of the samples are in `fixtures/receivers/README.md`. */
import { readFileSync } from 'node:fs';
import { CloudEvent } from 'cloudevents';
import t from 'tap';
import { withFormatSecret } from '../../../../lib/webhooks/formats/format-secret.ts';
import { fixture } from '../../../support/served.ts';
import { brokenRules, PAGERDUTY_RULES, SENTINEL_RULES, SLACK_RULES, SPLUNK_RULES, TEAMS_RULES } from '../../../support/vendor-rules.ts';
import { eventOf, fullInvestigation, made, smallInvestigation, testBody } from './events.ts';

const events = [
    eventOf(fullInvestigation),
    eventOf(smallInvestigation),
    eventOf(testBody, 'test'),
    eventOf({ hosts: 3, severity: 'critical', host: 'db2', description: 'x', link: 'https://example.com' }, 'scan.finished'),
    eventOf({}, 'nothing'),
];

const samplesOf = (format: string): readonly unknown[] => JSON.parse(readFileSync(fixture(`receivers/${format}.json`), 'utf8'));

/** Fields that hold what the sender likes. */
const FREE = new Set(['custom_details', 'data', 'event', 'fields']);

/** The places of all fields, those of things of different types apart. */
function fieldsOf(value: unknown, place = ''): readonly string[] {
    if (Array.isArray(value)) {
        return value.flatMap((item) => fieldsOf(item, `${place}[]`));
    }
    if (typeof value !== 'object' || value === null) {
        return [];
    }

    const { type } = value as { readonly type?: unknown };
    const here = place !== '' && typeof type === 'string' ? `${place}<${type}>` : place;
    return Object.entries(value).flatMap(([key, below]) => {
        const field = `${here}.${key}`;
        return FREE.has(key) && !Array.isArray(below) ? [field] : [field, ...fieldsOf(below, field)];
    });
}

/** What a message breaks of the rules, or of those of the public SDK. */
function broken(rules: Parameters<typeof brokenRules>[0] | 'cloudevents', message: unknown): readonly string[] {
    if (rules !== 'cloudevents') {
        return brokenRules(rules, message);
    }

    try {
        new CloudEvent(message as object, true);
        return [];
    } catch (error) {
        return [(error as Error).message];
    }
}

for (const [format, rules] of [
    ['slack', SLACK_RULES],
    ['teams', TEAMS_RULES],
    ['pagerduty', PAGERDUTY_RULES],
    ['splunk-hec', SPLUNK_RULES],
    ['sentinel', SENTINEL_RULES],
    ['cloudevents', 'cloudevents'],
] as const) {
    t.test(`${format}: the rules take the samples, and what goes out is nothing else`, (t) => {
        const samples = samplesOf(format);
        for (const [index, sample] of samples.entries()) {
            t.strictSame(broken(rules, sample), [], `sample ${index}`);
        }

        const known = new Set(samples.flatMap((sample) => fieldsOf(sample)));
        t.notSame(broken(rules, [{ Title: 1 }]), [], 'and not everything');
        for (const event of events) {
            const message: unknown = JSON.parse(Buffer.from(withFormatSecret(made(format, event).body, 'R'.repeat(32))).toString());
            t.strictSame(broken(rules, message), [], event.kind);
            // the columns are those of a table that is made for them
            const fields = format === 'sentinel' ? [] : fieldsOf(message);
            t.strictSame(
                fields.filter((field) => !known.has(field)),
                [],
                `${event.kind} has no field that the maker does not show`,
            );
        }
        t.end();
    });
}

t.test('sentinel: the rows have the columns that the docs tell to make', (t) => {
    const page = readFileSync('docs/formats.md', 'utf8');
    const [, declared = ''] = /stream has these columns: (.*?)\. The exporter/s.exec(page) ?? [];
    const columns = [...declared.matchAll(/`(\w+)`/g)].map(([, name]) => name);
    for (const event of events) {
        const [row] = JSON.parse(Buffer.from(made('sentinel', event).body).toString());
        t.strictSame(Object.keys(row), columns, event.kind);
    }
    t.end();
});
