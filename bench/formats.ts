/*
 * What a filter and a format cost: `node build/bench/formats.js`, after `npm run compile`. The least of some rounds, in microseconds a call
 * (what is more is what others on the machine take), on the investigation of the specification with a few users and assets. Bars: 5 for a
 * filter, 50 for a format.
 */
import { eventBody } from '../lib/webhooks/event-body.ts';
import { investigationCreated } from '../lib/webhooks/event-kinds.ts';
import { checkFilter, compileFilter } from '../lib/webhooks/filter.ts';
import { formatEvent, formatTable, formatterOf, withFormatSecret } from '../lib/webhooks/formats/index.ts';
import { compileSubscription } from '../lib/webhooks/subscription.ts';

const ROUNDS = 15;
const ROUND_MS = 40;

const link = 'https://example.com/r/1234567890';
const investigation = {
    timestamp: '2026-11-21T09:30:00.500Z',
    title: 'Suspicious sign-in from two countries',
    description: 'Signed in from Berlin and from Perth within an hour. '.repeat(8),
    link,
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: {
        users: Array.from({ length: 3 }, (_, n) => ({
            name: `User ${n}`,
            distinguishedName: `CN=User ${n},DC=example`,
            link,
            emails: `u${n}@example.com`,
        })),
        assets: Array.from({ length: 5 }, (_, n) => ({ hostname: `10.1.2.${n}`, fqdn: `db${n}.example.com`, shortname: `db${n}`, link })),
    },
};

const text = eventBody(investigationCreated, investigation);
const fresh = () => formatEvent({ kind: investigationCreated.name, id: '018f3f3e-7a51-7c1e-9f0a-2f8a6f6f0001', time: new Date(), text });
const parsed = fresh();
const { body } = parsed;

function microseconds(call: () => unknown): number {
    const rounds = Array.from({ length: ROUNDS }, () => {
        const begin = performance.now();
        let calls = 0;
        while (performance.now() - begin < ROUND_MS) {
            for (let n = 0; n < 20; n += 1) {
                call();
            }
            calls += 20;
        }

        return ((performance.now() - begin) / calls) * 1000;
    });
    return Math.min(...rounds);
}

function row(name: string, bar: number, call: () => unknown): void {
    const cost = microseconds(call);
    console.log(`${name.padEnd(58)} ${cost.toFixed(2).padStart(8)} µs  ${cost <= bar ? '' : `over ${bar}`}`);
}

const filters: Readonly<Record<string, unknown>> = {
    'title contains': { path: 'title', op: 'contains', value: 'ransom' },
    'any asset =, the last of 5': { path: 'actors.assets.hostname', op: '=', value: '10.1.2.4' },
    'any asset in a list of 1,000': { path: 'actors.assets.shortname', op: 'in', value: Array.from({ length: 1000 }, (_, n) => `x${n}`) },
    'time ≥': { path: 'timestamp', op: '≥', value: '2026-01-01T00:00:00Z' },
    'no asset of 5 in a block (all 5 parsed)': { path: 'actors.assets.hostname', op: 'matches-cidr', value: '192.168.0.0/16' },
    'no asset of 5 in one of 100 blocks': {
        path: 'actors.assets.hostname',
        op: 'matches-cidr',
        value: Array.from({ length: 100 }, (_, n) => `172.16.${n}.0/24`),
    },
    'six conditions in all, any and not': {
        all: [
            { path: 'title', op: 'contains', value: 'sign-in' },
            {
                any: [
                    { path: 'actors.assets.hostname', op: '=', value: 'x' },
                    { path: 'actors.users.name', op: 'starts-with', value: 'User 2' },
                ],
            },
            { not: { path: 'description', op: 'contains', value: 'Sydney' } },
            { path: 'timestamp', op: '>', value: '2026-01-01T00:00:00Z' },
            { path: 'investigationRrn', op: 'exists' },
        ],
    },
};
for (const [name, given] of Object.entries(filters)) {
    const holds = compileFilter(checkFilter(given, [investigationCreated]));
    row(`filter: ${name}`, 5, () => holds(body));
}

const kinds = compileSubscription({ kinds: ['scan.*', 'vulnerability_found', 'exporter_failing'], filter: null });
row('subscription: three kinds, none of them', 5, () => kinds(parsed));

const formats = formatTable();
const template = {
    text: '{{ body.title }} ({{ kind }})',
    fields: [
        { name: 'hosts', value: '{% for asset in body.actors.assets %}{{ asset.hostname }} {% endfor %}' },
        { name: 'link', value: '{{ body.link }}' },
    ],
};
for (const format of formats.keys()) {
    const make = formatterOf(formats, { format, template: format === 'template' ? template : null }, 'Acme');
    row(`format: ${format}, body parsed already`, 50, () => make(parsed));
}

row('parsing a body, once for all formats and filters', 50, () => fresh().body);
const stored = formatterOf(formats, { format: 'pagerduty', template: null }, 'Acme')(parsed).body;
row('putting a secret in, at send', 50, () => withFormatSecret(stored, 'R0123456789abcdefghijklmnopqrstu'));
