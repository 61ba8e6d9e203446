import fc from 'fast-check';
import Joi from 'joi';
import t from 'tap';
import type { EventKind } from '../../../../lib/webhooks/events/event-kinds.ts';
import { checkFilter, compileFilter, failedConditions } from '../../../../lib/webhooks/events/filter.ts';

const open: EventKind = { name: 'open', schema: Joi.object().unknown() };

type MakeCondition = (index: number) => { readonly path: string; readonly op: string; readonly value?: unknown };

/** As many conditions as a filter may have. */
const MOST = 99;

/** A filter of `length` conditions, none of which holds. */
function many(length: number, condition: MakeCondition) {
    return checkFilter({ any: Array.from({ length }, (_, index) => condition(index)) }, [open]);
}

const list = <Item>(length: number, item: (index: number) => Item): Item[] => Array.from({ length }, (_, index) => item(index));

/** Microseconds of CPU, in the best of several rounds: far more than it takes, and far less than if the body were gone through for each condition. */
const LIMIT = 400_000;

/** Conditions and bodies of about a MiB. */
const COSTLY: readonly [name: string, MakeCondition, body: object][] = [
    [
        'texts that almost match at every place',
        (index) => ({ path: 'text', op: 'contains', value: `${'a'.repeat(250 + index)}b${'a'.repeat(300)}` }),
        { text: 'a'.repeat(1_000_000) },
    ],
    ['many texts', (index) => ({ path: 'text', op: 'contains', value: `-${index}` }), { text: list(120_000, (index) => `z${index}`) }],
    [
        'many addresses and blocks',
        (index) => ({ path: 'hosts.ip', op: 'matches-cidr', value: list(35, (block) => `9.${index}.${block}.0/24`) }),
        { hosts: list(40_000, (index) => ({ ip: `10.${index >> 8}.${index & 255}.7` })) },
    ],
    [
        'many beginnings',
        (index) => ({ path: 'text', op: 'starts-with', value: `z-${index}` }),
        { text: list(100_000, (index) => `z${index}`) },
    ],
    ['many numbers', (index) => ({ path: 'count', op: '<', value: -index - 1 }), { count: list(500_000, (index) => index % 10) }],
    ['many objects', (index) => ({ path: `hosts.key${index}`, op: 'exists' }), { hosts: list(130_000, () => ({ z: 1 })) }],
];

/** Of the CPU, the least of several rounds: what is more is what others on the machine take. */
function microseconds<Given>(rounds: number, given: () => Given, call: (given: Given) => unknown): number {
    const all = list(rounds, () => {
        const each = given();
        const begin = process.cpuUsage();
        call(each);
        const { user, system } = process.cpuUsage(begin);
        return user + system;
    });
    return Math.min(...all);
}

t.test('asks a new body of usual length in less time than it takes to parse it', (t) => {
    const holds = compileFilter(
        checkFilter(
            {
                all: [
                    { path: 'title', op: 'contains', value: 'sign-in' },
                    {
                        any: [
                            { path: 'hosts.name', op: '=', value: 'x' },
                            { path: 'users.name', op: 'starts-with', value: 'User 2' },
                        ],
                    },
                    { not: { path: 'text', op: 'contains', value: 'Sydney' } },
                    { path: 'time', op: '>', value: '2026-01-01T00:00:00Z' },
                    { path: 'id', op: 'exists' },
                ],
            },
            [open],
        ),
    );
    const link = 'https://example.com/r/1234567890';
    const body = {
        id: 'rrn:investigation:eu:1:investigation:ABC',
        time: '2026-11-21T09:30:00.500Z',
        title: 'Suspicious sign-in from two countries',
        text: 'Signed in from Berlin and from Perth within an hour. '.repeat(8),
        users: list(3, (index) => ({ name: `User ${index}`, email: `u${index}@example.com`, link })),
        hosts: list(5, (index) => ({ name: `10.1.2.${index}`, fqdn: `db${index}.example.com`, link })),
    };
    const text = JSON.stringify(body);
    t.ok(holds(body));
    const often = (call: () => unknown): number =>
        microseconds(
            10,
            () => 10_000,
            (times) => list(times, call),
        );
    const [asking, parsing] = [often(() => holds({ ...body })), often(() => JSON.parse(text))];
    t.ok(asking < parsing, `${asking} µs for 10,000 bodies, ${parsing} to parse them`);
    t.end();
});

for (const [name, condition, body] of COSTLY) {
    t.test(`what a filter costs does not grow with its conditions times the body: ${name}`, (t) => {
        const cost = (length: number): number => {
            // A new body each time: what was found in one is kept for as long as it is.
            const given = () => ({ filter: many(length, condition), asked: structuredClone(body) });
            const answers: unknown[] = [];
            const least = microseconds(3, given, ({ filter, asked }) => {
                answers.push(compileFilter(filter)(asked), failedConditions(filter, asked).length);
            });
            t.strictSame(
                answers,
                list(6, (index) => (index % 2 === 0 ? false : length)),
            );
            return least;
        };
        const [one, most] = [cost(1), cost(MOST)];
        t.ok(most < 10 * one && most < LIMIT, `${one} µs for a condition, ${most} for ${MOST}`);
        t.end();
    });
}

t.test('long texts contain the same as short ones', (t) => {
    const text = (maxLength: number) => fc.string({ unit: fc.constantFrom('a', 'b', 'c'), minLength: 1, maxLength });
    // More than is looked for one by one.
    const filler = 'd'.repeat(1_000_000 / 21);
    fc.assert(
        fc.property(fc.array(text(8), { minLength: 1, maxLength: 30 }), fc.array(text(40), { maxLength: 10 }), (parts, texts) => {
            const all = { any: [...parts, 'none of all the texts'].map((value) => ({ path: 'text', op: 'contains', value }) as const) };
            const [body, long] = [{ text: texts }, { text: [...texts, filler] }];
            const failed = failedConditions(all, long);
            return (
                JSON.stringify(failed.map(({ condition }) => condition)) ===
                    JSON.stringify(failedConditions(all, body).map(({ condition }) => condition)) &&
                parts.some((part) => texts.some((one) => one.includes(part))) === (failed.length === 0) &&
                parts.every((value) => {
                    const alone = { any: [...all.any.slice(-1), { path: 'text', op: 'contains', value } as const] };
                    return compileFilter(alone)(long) === texts.some((one) => one.includes(value));
                })
            );
        }),
        { numRuns: 30 },
    );
    t.end();
});

t.test('blocks have their first and last address, and none beside them', (t) => {
    const holds = (value: string, ip: string) => compileFilter(checkFilter({ path: 'ip', op: 'matches-cidr', value }, [open]))({ ip });
    for (const [block, inside, outside] of [
        ['10.0.0.5/31', ['10.0.0.4', '10.0.0.5', '::ffff:10.0.0.4'], ['10.0.0.3', '10.0.0.6', '::10.0.0.4']],
        ['0.0.0.0/0', ['0.0.0.0', '255.255.255.255'], ['::', '::1']],
        ['fd00::/15', ['fd00::', 'fd01:ffff:ffff:ffff:ffff:ffff:ffff:ffff'], ['fcff::1', 'fd02::']],
        ['10.1.2.3', ['10.1.2.3'], ['10.1.2.2', '10.1.2.4', 'a'.repeat(100)]],
    ] as const) {
        t.strictSame(
            inside.filter((ip) => !holds(block, ip)),
            [],
            block,
        );
        t.strictSame(
            outside.filter((ip) => holds(block, ip)),
            [],
            block,
        );
    }
    t.end();
});
