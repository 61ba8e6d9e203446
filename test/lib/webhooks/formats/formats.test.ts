import { createRequire } from 'node:module';
import { CloudEvent, HTTP } from 'cloudevents';
import fc from 'fast-check';
import t from 'tap';
import { checkFormat, type Format, formatEvent, formatTable, formatterOf } from '../../../../lib/webhooks/formats/format.ts';
import { SECRET_PLACEHOLDER, withFormatSecret, withMaskedSecret } from '../../../../lib/webhooks/formats/format-secret.ts';
import type { HeaderPairs } from '../../../../lib/webhooks/messages/message-headers.ts';
import { FORMATS } from '../../../../lib/webhooks/setting-values.ts';
import {
    brokenRules,
    PAGERDUTY_BYTES,
    PAGERDUTY_RULES,
    SENTINEL_BYTES,
    SENTINEL_RULES,
    SLACK_RULES,
    SPLUNK_RULES,
    TEAMS_BYTES,
    TEAMS_RULES,
} from '../../../support/vendor-rules.ts';
import { eventOf, fullInvestigation, ID, made, smallInvestigation, testBody } from './events.ts';

// Its main file is written for bundlers.
const { AdaptiveCard, SerializationContext } = createRequire(import.meta.url)(
    'adaptivecards/dist/adaptivecards.js',
) as typeof import('adaptivecards');

const KEY = 'R0123456789abcdefghijklmnopqrstu';

const events = [
    eventOf(fullInvestigation),
    eventOf(smallInvestigation),
    eventOf(testBody, 'test'),
    eventOf({ hosts: 3, done: true, note: '', list: [1], severity: 'critical', host: 'db2' }, 'scan.finished'),
    eventOf({}, 'nothing'),
];

/** As it goes out. */
function sent(format: string, event = events[0] as (typeof events)[0]): Buffer {
    return Buffer.from(withFormatSecret(made(format, event).body, KEY));
}

const parsed = (format: string, event?: (typeof events)[0]) => JSON.parse(sent(format, event).toString());

t.test('native is the bytes of the specification', (t) => {
    const message = made('native', eventOf(fullInvestigation));
    t.equal(message.body.toString(), eventOf(fullInvestigation).text);
    t.equal(message.contentType, 'application/json; charset=UTF-8');
    t.strictSame(message.headers, []);
    t.end();
});

t.test('CloudEvents are what the SDK takes, structured and binary, and carry the body', (t) => {
    for (const event of events) {
        for (const format of ['cloudevents', 'cloudevents-binary']) {
            const { contentType, headers, body } = made(format, event);
            const message = { headers: { 'content-type': contentType, ...Object.fromEntries(headers) }, body: body.toString() };
            t.ok(HTTP.isEvent(message));
            const read = HTTP.toEvent(message) as CloudEvent<unknown>;
            t.ok(new CloudEvent({ ...read }, true).validate(), `${format} of ${event.kind}`);
            t.match(read, { id: ID, type: event.kind, source: '/Acme/webhook-exporter', specversion: '1.0' });
            t.strictSame(read.data, event.body);
        }
    }

    const { time } = HTTP.toEvent({
        headers: { 'content-type': 'application/cloudevents+json' },
        body: made('cloudevents', eventOf(fullInvestigation)).body.toString(),
    }) as CloudEvent<unknown>;
    t.equal(time, fullInvestigation.timestamp, 'when it happened');
    t.equal(made('cloudevents-binary', eventOf(fullInvestigation)).body.toString(), eventOf(fullInvestigation).text, 'the same bytes');
    t.end();
});

t.test('messages keep the rules of their vendors', (t) => {
    for (const event of events) {
        for (const [format, rules] of [
            ['slack', SLACK_RULES],
            ['teams', TEAMS_RULES],
            ['pagerduty', PAGERDUTY_RULES],
            ['splunk-hec', SPLUNK_RULES],
            ['sentinel', SENTINEL_RULES],
        ] as const) {
            t.strictSame(brokenRules(rules, parsed(format, event)), [], `${format} of ${event.kind}`);
        }
    }
    t.end();
});

t.test('the rules refuse what their vendors do', (t) => {
    t.not(
        brokenRules(SLACK_RULES, { text: 'x', blocks: [{ type: 'header', text: { type: 'plain_text', text: 'x'.repeat(151) } }] }).length,
        0,
    );
    t.not(brokenRules(TEAMS_RULES, { text: 'x' }).length, 0);
    t.not(brokenRules(PAGERDUTY_RULES, { ...parsed('pagerduty'), routing_key: SECRET_PLACEHOLDER }).length, 0);
    t.not(brokenRules(SPLUNK_RULES, { ...parsed('splunk-hec'), fields: { a: { b: 1 } } }).length, 0);
    t.not(brokenRules(SENTINEL_RULES, { TimeGenerated: '2026-11-21T09:30:00Z' }).length, 0);
    t.not(brokenRules(SENTINEL_RULES, [{ Title: 'reserved' }]).length, 0);
    t.end();
});

t.test('the card is one that the Adaptive Cards SDK reads without complaint', (t) => {
    for (const event of events) {
        const { content } = parsed('teams', event).attachments[0];
        const context = new SerializationContext();
        const card = new AdaptiveCard();
        card.parse(content, context);
        const complaints = Array.from({ length: context.eventCount }, (_, index) => context.getEventAt(index).message);
        t.strictSame(complaints, [], event.kind);
        t.equal(card.getItemCount(), content.body.length);
        t.strictSame(card.validateProperties().validationEvents, []);
    }
    t.end();
});

t.test('nothing of an event is markup in a chat', (t) => {
    const hostile = {
        ...fullInvestigation,
        title: '<!channel> *bold* & [x](https://evil.example)',
        description: '<https://evil.example|https://good.example> <@U1>',
        link: 'https://example.com/a?b=<c>',
    };
    const slack = sent('slack', eventOf(hostile)).toString();
    t.notMatch(slack, /<[!@#h]/, 'no mention, no link of the event');
    t.match(parsed('slack', eventOf(hostile)).blocks[0].text, { type: 'plain_text', text: /^&lt;!channel&gt; \*bold\* &amp;/ });
    const card = parsed('teams', eventOf(hostile)).attachments[0].content;
    t.ok(
        card.body.every(({ type }: { type: string }) => type === 'RichTextBlock'),
        'text blocks would read Markdown',
    );
    t.notOk('actions' in card, 'a link that could hide where it leads is none');
    t.match(parsed('slack').blocks, [{}, {}, {}, { text: { text: '<https://example.com/i/1?a=1&amp;b=2|Open in Acme>' } }]);
    t.end();
});

t.test('long texts are cut to what each vendor takes, between characters', (t) => {
    for (const unit of ['x', '&', '<', '😀', 'é', '\ud800', '\u0001x', '"']) {
        const long = unit.repeat(20_000);
        const body = {
            ...fullInvestigation,
            title: `a${long}`,
            description: long,
            actors: {
                users: [{ ...fullInvestigation.actors.users[0], name: long }],
                assets: [{ ...fullInvestigation.actors.assets[0], hostname: unit.repeat(300_000) }],
            },
        };
        const event = eventOf(body);
        t.strictSame(brokenRules(SLACK_RULES, parsed('slack', event)), [], unit);
        t.strictSame(brokenRules(PAGERDUTY_RULES, parsed('pagerduty', event)), [], unit);
        t.ok(sent('pagerduty', event).length <= PAGERDUTY_BYTES, `${unit}: ${sent('pagerduty', event).length} bytes for PagerDuty`);
        t.ok(sent('teams', event).length <= TEAMS_BYTES, `${unit}: ${sent('teams', event).length} bytes for Teams`);
        t.notMatch(sent('slack', event).toString(), /&(?!(?:amp|lt|gt);)/, 'no half entity');
        t.notMatch(sent('teams', event).toString(), /\\ud8/, 'no half character');
    }

    const names = Array.from({ length: 10 }, (_, index) => `${index}${'漢'.repeat(300)}`);
    const longest = {
        title: '漢'.repeat(400),
        description: '漢'.repeat(4000),
        link: `https://example.com/${'a'.repeat(1900)}`,
        ...Object.fromEntries(names.map((name) => [name, name])),
    };
    const card = sent('teams', eventOf(longest, 'own'));
    t.ok(card.length <= TEAMS_BYTES, `${card.length} bytes for Teams, with long names of facts`);
    const linked = sent('teams', eventOf({ ...longest, link: `https://example.com/${'漢'.repeat(1900)}` }, 'own'));
    t.ok(linked.length <= TEAMS_BYTES, `${linked.length} bytes for Teams, with a long link of other letters besides`);

    const huge = sent('pagerduty', eventOf({ text: 'x'.repeat(600_000) }, 'huge'));
    t.ok(huge.length <= PAGERDUTY_BYTES);
    t.match(JSON.parse(huge.toString()).payload.custom_details, { event_id: ID, omitted: /600011 bytes/ });

    const row = sent('sentinel', eventOf({ title: '"'.repeat(480_000), host: '😀'.repeat(100_000) }, 'huge'));
    t.ok(row.length <= SENTINEL_BYTES, `${row.length} bytes for Sentinel`);
    t.match(JSON.parse(row.toString())[0].EventBody, {
        event_id: ID,
        omitted: /^The body has 1360022 bytes, more than Azure Monitor takes$/,
    });
    t.end();
});

t.test('no link is longer than a chat takes, whatever is in it', (t) => {
    fc.assert(
        fc.property(fc.constantFrom('&', 'a=1&', 'a', '%26'), fc.integer({ min: 1, max: 2000 }), (unit, count) => {
            const event = eventOf({ title: 'x', link: `https://example.com/?${unit.repeat(count)}` }, 'own');
            return brokenRules(SLACK_RULES, parsed('slack', event)).length === 0 && sent('teams', event).length <= TEAMS_BYTES;
        }),
    );
    const linkOf = (link: string) => parsed('slack', eventOf({ link }, 'own')).blocks.at(-2)?.text?.text;
    const fits = `https://example.com/?${'&'.repeat(592)}`;
    t.equal(linkOf(fits), `<${fits.replaceAll('&', '&amp;')}|Open in Acme>`);
    t.notMatch(linkOf(`${fits}&&&`), /https/, 'a link that is cut off would lead elsewhere');
    t.end();
});

t.test('PagerDuty: one alert for an investigation, nobody is paged by a test', (t) => {
    t.match(parsed('pagerduty'), {
        routing_key: KEY,
        event_action: 'trigger',
        dedup_key: fullInvestigation.investigationId,
        payload: { severity: 'error', source: 'db1', class: 'idr_investigation_created', timestamp: fullInvestigation.timestamp },
        client_url: fullInvestigation.link,
    });
    t.match(parsed('pagerduty', events[2]), { event_action: 'resolve', dedup_key: ID, payload: { severity: 'info', source: 'Acme' } });
    t.match(parsed('pagerduty', events[3]), { dedup_key: ID, payload: { severity: 'critical', source: 'db2' } });
    t.end();
});

t.test('PagerDuty: what becomes of an exporter is one alert, which ends once it has recovered', (t) => {
    const exporterId = 'a1b2c3d4-0d5e-4f6a-8b7c-9d0e1f2a3b4c';
    const notice = { timestamp: '2026-11-23T10:00:05.000Z', exporterId, exporterName: 'siem', collector: 'default', failures: 10 };
    for (const [kind, action] of [
        ['exporter_failing', 'trigger'],
        ['exporter_stopped', 'trigger'],
        ['exporter_recovered', 'resolve'],
    ] as const) {
        t.match(parsed('pagerduty', eventOf(notice, kind)), { event_action: action, dedup_key: exporterId });
    }
    t.match(parsed('pagerduty', eventOf(notice, 'own')), { event_action: 'trigger', dedup_key: ID }, 'a kind of an application');
    t.end();
});

t.test('what becomes of an exporter is told to people with its name and why', (t) => {
    const lastOutcome = { code: 'gone', detail: 'Answered 410' };
    const notice = {
        timestamp: '2026-11-23T10:00:05.000Z',
        exporterId: ID,
        exporterName: 'siem',
        collector: 'default',
        failures: 1,
        lastOutcome,
    };
    const shown = (kind: string, body: object = notice) => {
        const { text, blocks } = parsed('slack', eventOf(body, kind));
        return [text, blocks[1].text?.text ?? null];
    };
    t.strictSame(shown('exporter_failing'), ['Exporter siem is failing', 'Answered 410']);
    const stopped = { ...notice, reason: 'The receiver answered 410 Gone' };
    t.strictSame(shown('exporter_stopped', stopped), ['Exporter siem was stopped', 'The receiver answered 410 Gone']);
    t.strictSame(shown('exporter_recovered', { ...notice, exporterName: '' }), [`Exporter ${ID} has recovered`, 'Answered 410']);
    const { lastOutcome: _, ...bare } = notice;
    t.strictSame(shown('exporter_failing', bare), ['Exporter siem is failing', null]);
    t.end();
});

t.test('Splunk and Sentinel get the body whole, and the time at which it happened', (t) => {
    t.strictSame(parsed('splunk-hec').event, fullInvestigation);
    t.equal(parsed('splunk-hec').time, 1795253400.5);
    t.strictSame(parsed('splunk-hec').fields, { event_kind: 'idr_investigation_created', event_id: ID });
    const [row, ...others] = parsed('sentinel');
    t.strictSame(row.EventBody, fullInvestigation);
    t.equal(row.TimeGenerated, fullInvestigation.timestamp);
    t.strictSame(others, []);
    t.end();
});

t.test('a secret is put in where it belongs, and nowhere that an event says so', (t) => {
    const event = eventOf({ ...fullInvestigation, title: `a${SECRET_PLACEHOLDER}b`, description: `routing_key":"${SECRET_PLACEHOLDER}` });
    const { body } = made('pagerduty', event);
    t.equal(body.filter((byte) => byte === SECRET_PLACEHOLDER.charCodeAt(0)).length, 1);
    const out = withFormatSecret(body, KEY);
    t.equal(Buffer.from(out).toString().split(KEY).length, 2);
    t.equal(JSON.parse(Buffer.from(out).toString()).routing_key, KEY);
    t.equal(JSON.parse(Buffer.from(withMaskedSecret(body)).toString()).routing_key, '********');
    t.equal(JSON.parse(Buffer.from(withFormatSecret(Buffer.from(`{"a":"${SECRET_PLACEHOLDER}"}`), 'x"\n')).toString()).a, 'x"\n');
    const native = made('native', event).body;
    t.equal(withFormatSecret(native, KEY), native, 'other bodies are not even copied');
    t.end();
});

t.test('a choice that could not be sent is refused at save', (t) => {
    const formats = formatTable();
    const check = (format: string, rest: { template?: unknown; secret?: string; headers?: HeaderPairs } = {}) =>
        checkFormat(formats, { format, template: rest.template ?? null }, { vendor: 'Acme', ...rest });
    for (const format of FORMATS.filter((name) => name !== 'template' && name !== 'pagerduty')) {
        t.doesNotThrow(() => check(format), format);
    }

    t.doesNotThrow(() => check('pagerduty', { secret: KEY }));
    t.doesNotThrow(() => check('template', { template: { a: '{{ kind }}' } }));
    t.throws(() => check('carrier-pigeon'), { code: 'INVALID_INPUT', field: 'format', message: /^Format must be one of native, / });
    t.throws(() => check('pagerduty'), { field: 'formatSecret', message: 'Format pagerduty needs a routing key' });
    t.throws(() => check('pagerduty', { secret: 'hunter2' }), {
        field: 'formatSecret',
        message: /^The routing key must be the 32 letters/,
    });
    t.throws(() => check('slack', { secret: KEY }), { field: 'formatSecret', message: 'Format slack takes no secret' });
    t.throws(() => check('template'), { field: 'template', message: 'Format template needs a template' });
    t.throws(() => check('slack', { template: {} }), { field: 'template', message: 'Format slack takes no template' });
    t.throws(() => check('template', { template: { a: '{% for i in (1..9000000) %}x{% endfor %}' } }), {
        code: 'INVALID_INPUT',
        field: 'template',
    });
    t.throws(() => check('cloudevents-binary', { headers: [['CE-Id', 'x']] }), { field: 'headers', message: /ce-id is set by the format/ });
    const [own, headers] = [5, Array.from({ length: 16 }, (_, at) => [`X-${at}`, 'x'] as const)];
    t.doesNotThrow(() => check('cloudevents-binary', { headers: headers.slice(0, 20 - own) }));
    const message = `Headers must be at most 20 with the ${own} of the format cloudevents-binary`;
    t.throws(() => check('cloudevents-binary', { headers }), { code: 'INVALID_INPUT', field: 'headers', message });
    const long = headers.slice(0, 2).map(([name]) => [name, 'x'.repeat(4_080)] as const);
    t.doesNotThrow(() => check('cloudevents', { headers: long }));
    t.throws(() => check('cloudevents-binary', { headers: long }), { code: 'INVALID_INPUT', field: 'headers', message: /8192 bytes/ });
    t.end();
});

t.test("an application's own format is one pure function", (t) => {
    const own: Format = {
        name: 'syslog-line',
        contentType: 'text/plain; charset=UTF-8',
        make: ({ kind, id }, { vendor }) => ({ headers: [['x-own', kind]], body: `${vendor} ${kind} ${id}` }),
    };
    const formats = formatTable([own]);
    const choice = { format: own.name, template: null };
    const message = formatterOf(formats, choice, 'Acme')(events[0] as (typeof events)[0]);
    t.equal(message.body.toString(), `Acme idr_investigation_created ${ID}`);
    t.strictSame(message.headers, [['x-own', 'idr_investigation_created']]);
    t.throws(() => formatterOf(formatTable(), choice, 'Acme'), { code: 'MISCONFIGURED', field: 'format' }, 'one that is no more');

    t.throws(() => formatTable([own, own]), { code: 'MISCONFIGURED', field: 'formats[1].name' });
    t.throws(() => formatTable([{ ...own, name: 'native' }]), { code: 'MISCONFIGURED', field: 'formats[0].name' });
    t.throws(() => formatTable([{ ...own, name: 'A B' }]), { code: 'MISCONFIGURED', field: 'formats[0].name' });
    t.throws(() => formatTable([{ ...own, contentType: 'a\r\nb' }]), { code: 'MISCONFIGURED', field: 'formats[0].contentType' });

    const bytes = Uint8Array.of(1, 2, 0xff);
    const raw = formatterOf(formatTable([{ ...own, make: () => ({ body: bytes }) }]), choice, 'Acme')(events[0] as (typeof events)[0]);
    bytes.fill(0);
    t.strictSame([...raw.body], [1, 2, 0xff], 'bytes go out as they were');

    const bad = (make: Format['make']) => () => {
        const table = formatTable([{ ...own, make }]);
        checkFormat(table, choice, { vendor: 'Acme' });
    };
    t.throws(
        bad(() => ({ headers: [['X-Acme-Event', 'other']], body: '' })),
        { code: 'INVALID_INPUT', field: 'headers' },
    );
    t.throws(
        bad(() => ({ headers: [['Content-Type', 'text/html']], body: '' })),
        { code: 'INVALID_INPUT', field: 'headers' },
    );
    t.throws(
        bad(() => ({ body: {} as never })),
        { code: 'INVALID_INPUT', field: 'format', message: /text or bytes/ },
    );
    t.throws(
        bad(() => {
            throw new TypeError('hunter2');
        }),
        { code: 'INVALID_INPUT', field: 'format', message: 'Format syslog-line cannot make a message of this event' },
    );
    t.end();
});

const template = {
    text: '{{ body.title | upcase }} {{ kind }} {{ id }} {{ time }}',
    all: ['{% for k in body %}{{ k | json }}{% endfor %}'],
};
const jsonObject = fc.dictionary(
    fc.oneof(fc.string(), fc.constantFrom('title', 'link', 'timestamp', 'actors', 'severity')),
    fc.jsonValue(),
);

t.test('whatever an event holds, each format gives JSON, and the same bytes again', (t) => {
    fc.assert(
        fc.property(jsonObject, fc.constantFrom('idr_investigation_created', 'test', 'own'), (body, kind) => {
            const text = JSON.stringify(body);
            const event = () => formatEvent({ kind, id: ID, time: new Date(0), text });
            for (const format of FORMATS) {
                const first = made(format, event(), format === 'template' ? template : null);
                const again = made(format, event(), format === 'template' ? structuredClone(template) : null);
                if (!first.body.equals(again.body)) {
                    throw new Error(`${format} differs`);
                }

                JSON.parse(Buffer.from(withFormatSecret(first.body, KEY)).toString());
            }
        }),
        { numRuns: 150 },
    );
    t.end();
});

t.test('an object that hides how it is written as text makes no message impossible', (t) => {
    const odd = { toString: 0, valueOf: [{ toString: {} }] };
    const event = formatEvent({ kind: 'own', id: ID, time: new Date(0), text: JSON.stringify({ title: odd, list: [odd], fine: 'x' }) });
    const document = { a: '{{ body.title | upcase }}', b: '{{ body.list }}', c: '{{ body.title | json }}', d: '{{ body.title.toString }}' };
    const filled = { a: '[OBJECT OBJECT]', b: '[object Object]', c: JSON.stringify(odd), d: '0' };
    t.strictSame(JSON.parse(Buffer.from(made('template', event, document).body).toString()), filled);
    t.end();
});

t.test('no format changes the event that others are made of', (t) => {
    const event = eventOf(fullInvestigation);
    const frozen = (value: unknown): void => {
        if (typeof value === 'object' && value !== null) {
            Object.freeze(value);
            Object.values(value).forEach(frozen);
        }
    };
    frozen(event.body);
    const sorting = { a: '{{ body.actors.users | sort: "name" | reverse | map: "name" | join }}{% assign body = 1 %}{{ body }}' };
    for (const format of FORMATS) {
        t.doesNotThrow(() => made(format, event, format === 'template' ? sorting : null), format);
    }
    t.end();
});
