import fc from 'fast-check';
import Joi from 'joi';
import t from 'tap';
import { z } from 'zod';
import { timestamp } from '../../../../lib/timestamp.ts';
import { type EventKind, eventKinds, investigationCreated } from '../../../../lib/webhooks/events/event-kinds.ts';
import {
    type Condition,
    checkFilter,
    compileFilter,
    FILTER_OPS,
    type Filter,
    failedConditions,
} from '../../../../lib/webhooks/events/filter.ts';

const scan: EventKind = {
    name: 'scan.finished',
    schema: Joi.object({
        at: timestamp(),
        count: Joi.number(),
        done: Joi.boolean(),
        address: Joi.string(),
        note: Joi.string().allow(null),
        tags: Joi.array().items(Joi.string()),
        hosts: Joi.array().items(Joi.object({ name: Joi.string(), ports: Joi.array().items(Joi.number()) })),
        labels: Joi.object(),
        free: Joi.object({ known: Joi.string() }).unknown(),
        patterned: Joi.object({ known: Joi.string() }).pattern(/^x-/, Joi.string()),
        either: Joi.alternatives(Joi.string(), Joi.object({ a: Joi.string() })),
        any: Joi.any(),
    }),
};

const body = {
    at: '2026-11-21T09:30:00.000Z',
    count: 3,
    done: false,
    address: '10.1.2.3',
    note: null,
    tags: ['prod', 'eu'],
    hosts: [
        { name: 'db1', ports: [5432] },
        { name: 'web1', ports: [80, 443] },
    ],
    labels: {},
    matrix: [[1, [2]], [{ deep: 'x' }]],
    v6: '2001:DB8::1',
    mapped: '::ffff:10.1.2.3',
};

const open: EventKind = { name: 'open', schema: Joi.object().unknown() };

/** What a condition says of the body, once it was checked as users' are. */
function holds(path: string, op: string, value?: unknown, of: unknown = body): boolean {
    return compileFilter(checkFilter({ path, op, ...(value !== undefined && { value }) }, [open]))(of);
}

t.test('answers what it is asked', (t) => {
    const cases: readonly [path: string, op: string, value: unknown, expected: boolean][] = [
        ['count', '=', 3, true],
        ['count', '=', '3', false],
        ['done', '=', false, true],
        ['note', '=', null, true],
        ['missing', '=', null, false],
        ['count', '≠', 3, false],
        ['count', '!=', 4, true],
        ['missing', '≠', 4, true],
        ['tags', '=', 'eu', true],
        ['tags', '≠', 'eu', false],
        ['tags', '≠', 'us', true],
        ['tags', 'in', ['us', 'eu'], true],
        ['count', 'in', [1, 2], false],
        ['address', 'contains', '1.2', true],
        ['count', 'contains', '3', false],
        ['tags', 'starts-with', 'pr', true],
        ['address', 'starts-with', '1.2', false],
        ['hosts.name', '=', 'web1', true],
        ['hosts.ports', '=', 443, true],
        ['hosts.ports', '>', 443, true],
        ['hosts.ports', '>', 5432, false],
        ['hosts', '=', 'db1', false],
        ['matrix', '=', 2, true],
        ['matrix.deep', '=', 'x', true],
        ['count', '<', 4, true],
        ['count', '<=', 3, true],
        ['count', '≥', 4, false],
        ['count', '<', '2030-01-01T00:00:00Z', false],
        ['at', '>', '2026-11-21T10:00:00+01:00', true],
        ['at', '≤', '2026-11-21T09:30:00Z', true],
        ['at', '<', '2026-11-21T09:30:00Z', false],
        ['address', '>', '2026-11-21T09:30:00Z', false],
        ['address', 'matches-cidr', '10.0.0.0/8', true],
        ['address', 'matches-cidr', '10.1.2.3', true],
        ['address', 'matches-cidr', '11.0.0.0/8', false],
        ['address', 'matches-cidr', ['192.168.0.0/16', '10.1.0.0/16'], true],
        ['address', 'matches-cidr', '::/0', false],
        ['v6', 'matches-cidr', '2001:db8::/32', true],
        ['mapped', 'matches-cidr', '10.0.0.0/8', true],
        ['count', 'matches-cidr', '0.0.0.0/0', false],
        ['tags', 'matches-cidr', '0.0.0.0/0', false],
        ['count', 'exists', undefined, true],
        ['count', 'exists', false, false],
        ['missing', 'exists', undefined, false],
        ['missing', 'exists', false, true],
        ['note', 'exists', true, false],
        ['hosts', 'exists', true, true],
        ['labels', 'exists', true, true],
        ['labels.x', 'exists', true, false],
        ['constructor', 'exists', true, false],
        ['__proto__', 'exists', true, false],
        ['tags.length', 'exists', true, false],
        ['tags.0', 'exists', true, false],
        ['address.length', 'exists', true, false],
    ];
    for (const [path, op, value, expected] of cases) {
        t.equal(holds(path, op, value), expected, `${path} ${op} ${JSON.stringify(value)}`);
    }
    t.end();
});

t.test('joins conditions by all, any and not', (t) => {
    const yes: Condition = { path: 'count', op: '=', value: 3 };
    const no: Condition = { path: 'count', op: '=', value: 4 };
    const cases: readonly [Filter, boolean][] = [
        [{ all: [yes, yes] }, true],
        [{ all: [yes, no] }, false],
        [{ any: [no, yes] }, true],
        [{ any: [no, no] }, false],
        [{ not: no }, true],
        [{ all: [{ any: [no, { not: { not: yes } }] }, { not: { all: [yes, no] } }] }, true],
    ];
    for (const [filter, expected] of cases) {
        t.equal(compileFilter(checkFilter(filter, [open]))(body), expected, JSON.stringify(filter));
        t.equal(failedConditions(filter, body).length === 0, expected, 'and gives its reasons when it does not hold');
    }
    t.end();
});

t.test('is kept in one spelling', (t) => {
    const given = {
        all: [
            { value: '2026-11-21T10:30:00+01:00', op: '>=', path: 'at' },
            { path: 'note', op: 'exists' },
        ],
    };
    const kept = checkFilter(given, [scan]);
    t.strictSame(kept, {
        all: [
            { path: 'at', op: '≥', value: '2026-11-21T09:30:00.000Z' },
            { path: 'note', op: 'exists', value: true },
        ],
    });
    t.strictSame(checkFilter(JSON.parse(JSON.stringify(kept)), [scan]), kept);
    t.end();
});

t.test('knows the paths of the kinds, and refuses all others', (t) => {
    const known = [
        ...['at', 'hosts', 'hosts.name', 'hosts.ports', 'tags', 'labels.whatever.it.is', 'free.known', 'free.other', 'patterned.x-a'],
        ...['either.a', 'any.thing'],
    ];
    const unknown = [
        'nothing',
        'at.year',
        'hosts.nothing',
        'hosts.0',
        'hosts.0.name',
        'tags.x',
        'count.x',
        'hosts.name.first',
        'free.known.x',
    ];
    for (const path of known) {
        t.doesNotThrow(() => checkFilter({ path, op: 'exists' }, [scan]), path);
    }
    for (const path of unknown) {
        t.throws(
            () => checkFilter({ any: [{ path, op: 'exists' }] }, [scan]),
            { code: 'INVALID_INPUT', field: 'filter.any[0].path' },
            path,
        );
    }

    t.doesNotThrow(() => checkFilter({ path: 'actors.assets.hostname', op: '=', value: 'db1' }, [scan, investigationCreated]));
    t.throws(() => checkFilter({ path: 'actors.assets.hostname', op: '=', value: 'db1' }, [scan]), {
        message: 'Filter.path leads to nothing: no event kind of this exporter (scan.finished) has actors.assets.hostname',
    });
    t.end();
});

t.test('knows the fields of a Standard Schema: types from its JSON Schema, else whatever is below them', (t) => {
    const shape = { at: z.string(), hosts: z.array(z.object({ name: z.string() })), loose: z.looseObject({ a: z.string() }) };
    const jsonSchema = z.toJSONSchema(z.object(shape)) as NonNullable<EventKind['jsonSchema']>;
    const typed: EventKind = { name: 'typed', schema: z.object(shape), fields: ['at', 'hosts', 'loose'], jsonSchema };
    const listed: EventKind = { name: 'listed', schema: z.object(shape), fields: ['at', 'hosts'] };
    process.removeAllListeners('warning');
    eventKinds([typed, listed]);
    for (const [kind, path, isKnown] of [
        [typed, 'hosts.name', true],
        [typed, 'loose.b', true],
        [typed, 'hosts.x', false],
        [typed, 'at.x', false],
        [listed, 'hosts.x.y', true],
        [listed, 'loose', false],
    ] as const) {
        const check = () => checkFilter({ path, op: 'exists' }, [kind]);
        isKnown
            ? t.doesNotThrow(check, `${kind.name} ${path}`)
            : t.throws(check, { code: 'INVALID_INPUT', field: 'filter.path' }, `${kind.name} ${path}`);
    }
    t.end();
});

t.test('refuses what is no filter, naming field and rule', (t) => {
    const deep = (levels: number): unknown => (levels === 0 ? { path: 'count', op: 'exists' } : { not: deep(levels - 1) });
    const good = { path: 'count', op: '=', value: 1 };
    const cases: readonly [unknown, string, RegExp][] = [
        [null, 'filter', /^Filter must be an object$/],
        [[], 'filter', /must be an object/],
        [{}, 'filter.path', /must be 1 to 16 keys/],
        [{ all: [] }, 'filter.all', /list of 1 to 100/],
        [{ all: good }, 'filter.all', /list/],
        [{ all: [good], any: [good] }, 'filter', /nothing beside all/],
        [{ all: [good, 7] }, 'filter.all[1]', /^Filter\.all\[1\] must be an object$/],
        [{ not: [good] }, 'filter.not', /must be an object/],
        [{ ...good, also: 1 }, 'filter', /it has also$/],
        [{ ...good, path: 7 }, 'filter.path', /keys/],
        [{ ...good, path: 'a..b' }, 'filter.path', /keys/],
        [{ ...good, path: 'a.'.repeat(20) }, 'filter.path', /keys/],
        [{ ...good, path: 'x'.repeat(257) }, 'filter.path', /256/],
        [{ ...good, op: '~' }, 'filter.op', /^Filter\.op must be one of = ≠ in contains/],
        [{ ...good, op: 'toString' }, 'filter.op', /one of/],
        [{ ...good, value: undefined }, 'filter.value', /text of at most 1024/],
        [{ ...good, value: Number.NaN }, 'filter.value', /text/],
        [{ ...good, value: [1] }, 'filter.value', /text/],
        [{ ...good, value: 'x'.repeat(1025) }, 'filter.value', /1024/],
        [{ ...good, op: 'in' }, 'filter.value', /list of 1 to 1000/],
        [{ ...good, op: 'in', value: [] }, 'filter.value', /list/],
        [{ ...good, op: 'contains', value: '' }, 'filter.value', /1 to 1024/],
        [{ ...good, op: 'starts-with', value: 7 }, 'filter.value', /text/],
        [{ ...good, op: 'matches-cidr', value: '10.0.0.0/33' }, 'filter.value', /address\/bits/],
        [{ ...good, op: 'matches-cidr', value: '::ffff:10.0.0.0/104' }, 'filter.value', /address\/bits/],
        [{ ...good, op: 'matches-cidr', value: ['10.0.0.0/8', 'x'] }, 'filter.value', /address\/bits/],
        [{ ...good, op: 'matches-cidr', value: Array.from({ length: 101 }, () => '10.0.0.0/8') }, 'filter.value', /1 to 100$/],
        [{ ...good, op: '<', value: 'abc' }, 'filter.value', /number or an ISO 8601 time/],
        [{ ...good, op: '<', value: true }, 'filter.value', /number or an ISO 8601 time/],
        [{ ...good, op: 'exists', value: 'yes' }, 'filter.value', /true or false/],
        [deep(8), 'filter', /at most 8 levels/],
        [{ all: Array.from({ length: 60 }, () => ({ any: [good, good] })) }, 'filter', /at most 100 conditions/],
        [{ path: 'count', op: 'in', value: Array.from({ length: 100 }, () => 'x'.repeat(1000)) }, 'filter', /at most 65536 characters/],
    ];
    for (const [filter, field, message] of cases) {
        t.throws(() => checkFilter(filter, [scan]), { code: 'INVALID_INPUT', field, message });
    }
    t.doesNotThrow(() => checkFilter(deep(7), [scan]));
    t.end();
});

t.test('says which conditions a body fails, and none of its values', (t) => {
    const filter = checkFilter(
        {
            all: [
                { path: 'count', op: '=', value: 3 },
                {
                    any: [
                        { path: 'tags', op: '=', value: 'us' },
                        { path: 'missing', op: 'exists' },
                    ],
                },
                { not: { path: 'hosts.name', op: 'starts-with', value: 'db' } },
            ],
        },
        [open],
    );
    t.strictSame(failedConditions(filter, body), [
        { field: 'filter.all[1].any[0]', condition: 'tags = "us"', holds: false, found: 2 },
        { field: 'filter.all[1].any[1]', condition: 'missing exists true', holds: false, found: 0 },
        { field: 'filter.all[2].not', condition: 'hosts.name starts-with "db"', holds: true, found: 2 },
    ]);
    t.end();
});

const scalar = fc.oneof(fc.string(), fc.integer(), fc.boolean(), fc.constant(null));
const path = fc.constantFrom('count', 'tags', 'hosts.name', 'a', 'a.b', 'a.b.c', '__proto__', 'constructor.name', 'length', 'toString');
const values: Readonly<Record<string, fc.Arbitrary<unknown>>> = {
    '=': scalar,
    '≠': scalar,
    in: fc.array(scalar, { minLength: 1 }),
    contains: fc.string({ minLength: 1 }),
    'starts-with': fc.string({ minLength: 1 }),
    'matches-cidr': fc.oneof(fc.ipV4(), fc.ipV6(), fc.constantFrom('0.0.0.0/0', '::/0')),
    exists: fc.boolean(),
};
const ordered = fc.oneof(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constant('2026-11-21T09:30:00Z'));
const condition = fc.constantFrom(...FILTER_OPS).chain((op) => fc.record({ path, op: fc.constant(op), value: values[op] ?? ordered }));
const { filter: anyFilter } = fc.letrec<{ filter: unknown }>((tie) => ({
    filter: fc.oneof(
        { maxDepth: 4, withCrossShrink: true },
        condition,
        fc.record({ all: fc.array(tie('filter'), { minLength: 1, maxLength: 4 }) }),
        fc.record({ any: fc.array(tie('filter'), { minLength: 1, maxLength: 4 }) }),
        fc.record({ not: tie('filter') }),
    ),
}));

t.test('never throws, whatever the body; not is the opposite; what fails has reasons', (t) => {
    const bodies = fc.oneof(
        fc.jsonValue(),
        fc.anything({ withNullPrototype: true, withBigInt: true, withDate: true, withMap: true, withSparseArray: true }),
    );
    const near = fc.dictionary(fc.constantFrom('count', 'tags', 'hosts', 'a', '__proto__', 'constructor', 'length'), bodies);
    fc.assert(
        fc.property(anyFilter, fc.oneof(bodies, near), (given, of) => {
            const filter = checkFilter(given, [open]);
            const holds = compileFilter(filter)(of);
            const reasons = failedConditions(filter, of);
            return typeof holds === 'boolean' && compileFilter({ not: filter })(of) === !holds && (reasons.length === 0) === holds;
        }),
        { numRuns: 3000 },
    );
    t.end();
});

t.test('bodies that are built to be costly cost no more than their length', (t) => {
    const filter = compileFilter(checkFilter({ path: 'a.b.c', op: 'contains', value: 'x' }, [open]));
    let nested: unknown = 'x';
    for (let level = 0; level < 100_000; level += 1) {
        nested = [nested];
    }
    t.equal(filter({ a: nested }), false, 'lists in lists without end');
    const cyclic: unknown[] = [];
    cyclic.push(cyclic);
    t.equal(filter({ a: cyclic }), false);
    const cost = (length: number): number => {
        const rounds = Array.from({ length: 5 }, () => {
            const wide = { a: Array.from({ length }, () => ({ b: Array.from({ length }, () => ({ c: 'y' })) })) };
            const begin = process.cpuUsage();
            t.equal(filter(wide), false);
            const { user, system } = process.cpuUsage(begin);
            return user + system;
        });
        return Math.min(...rounds);
    };
    const [short, usual, long] = [cost(150), cost(300), cost(600)];
    t.ok(usual < 200_000, `${usual} µs`);
    t.ok(long < 80 * short, `${short} µs, ${long} for 16 times as much`);
    t.end();
});
