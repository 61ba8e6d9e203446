import { eventBody } from '../../lib/webhooks/events/event-body.ts';
import { investigationCreated } from '../../lib/webhooks/events/event-kinds.ts';
import { checkFilter, compileFilter } from '../../lib/webhooks/events/filter.ts';
import { compileSubscription } from '../../lib/webhooks/events/subscription.ts';
import { formatEvent, formatTable, formatterOf } from '../../lib/webhooks/formats/format.ts';
import { withFormatSecret } from '../../lib/webhooks/formats/format-secret.ts';
import { FILTERS, TEMPLATE } from '../formats.ts';

/**
 * Prints what filters and formats cost, in microseconds a call, on the investigation of the specification with a few users and assets; told to
 * `parse`, what `JSON.parse` of its body does. Each is the least of so many rounds.
 */
const [way = '', rounds = '1'] = process.argv.slice(2);
/** In microseconds. */
const ROUND = 40_000;
/** Calls between two looks at the clock. */
const AT_ONCE = 100;

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
const event = formatEvent({ kind: investigationCreated.name, id: '018f3f3e-7a51-7c1e-9f0a-2f8a6f6f0001', time: new Date(), text });
const { body } = event;

/** Of CPU, so that others on the machine do not count. */
function microseconds(call: () => unknown): number {
    const costs = Array.from({ length: Number(rounds) }, () => {
        const begun = process.cpuUsage();
        let [calls, spent] = [0, 0];
        while (spent < ROUND) {
            for (let n = 0; n < AT_ONCE; n += 1) {
                call();
            }
            const { user, system } = process.cpuUsage(begun);
            calls += AT_ONCE;
            spent = user + system;
        }

        return spent / calls;
    });
    return Math.min(...costs);
}

function* choices(): Generator<readonly [name: string, call: () => unknown]> {
    for (const [name, given] of Object.entries(FILTERS)) {
        const holds = compileFilter(checkFilter(given, [investigationCreated]));
        // what was read of a body is kept, and each event has another one
        yield [`filter: ${name}`, () => holds({ ...body })];
    }

    const wants = compileSubscription({ kinds: ['scan.*', 'vulnerability_found', 'exporter_failing'], filter: null });
    yield ['subscription: three kinds, none of them', () => wants(event)];

    const formats = formatTable();
    for (const format of formats.keys()) {
        const make = formatterOf(formats, { format, template: format === 'template' ? TEMPLATE : null }, 'Acme');
        yield [`format: ${format}`, () => make(event)];
    }
    const stored = formatterOf(formats, { format: 'pagerduty', template: null }, 'Acme')(event).body;
    yield ['at send: a secret put in', () => withFormatSecret(stored, 'R0123456789abcdefghijklmnopqrstu')];
}

const measured = way === 'parse' ? [['parsed', () => JSON.parse(text)] as const] : choices();
const figures = Array.from(measured, ([name, call]) => [name, microseconds(call)] as const);
process.stdout.write(`${JSON.stringify(Object.fromEntries(figures))}\n`);
