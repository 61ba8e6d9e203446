import fc from 'fast-check';
import Joi from 'joi';
import t from 'tap';
import { compiled, quickly, UNSURE } from '../../lib/compiled-schema.ts';
import { timestamp } from '../../lib/timestamp.ts';
import { eventBody } from '../../lib/webhooks/events/event-body.ts';
import { investigationCreated } from '../../lib/webhooks/events/event-kinds.ts';

const LETTERS = /^[a-z]+$/;
const schema = Joi.object({
    at: timestamp().required(),
    id: Joi.string().guid(),
    name: Joi.string().required(),
    note: Joi.string().allow(''),
    path: Joi.string().pattern(LETTERS),
    items: Joi.array().items(Joi.object({ a: Joi.string().required(), b: Joi.string() })),
});
const check = compiled(schema.describe(), [LETTERS]);
const GOOD = {
    items: [{ b: '2', a: '1' }, { a: 'x' }],
    path: 'ab',
    note: '',
    name: 'n',
    id: '0f8fad5b-d9cb-469f-a165-70867728950e',
    at: '2026-11-21T09:30:00.000Z',
};

t.test('is sure of a value that the schema takes as it is, and puts its keys in order', async (t) => {
    const checked = check(GOOD);
    t.strictSame(checked, schema.validate(GOOD).value);
    const inOrder = { at: GOOD.at, id: GOOD.id, name: 'n', note: '', path: 'ab', items: [{ a: '1', b: '2' }, { a: 'x' }] };
    t.equal(JSON.stringify(checked), JSON.stringify(inOrder));
    t.equal(JSON.stringify(check({ name: 'n', at: GOOD.at })), JSON.stringify({ at: GOOD.at, name: 'n' }));
});

const WITHOUT_NAME = { at: GOOD.at };
const UNCERTAIN: Readonly<Record<string, unknown>> = {
    'no object': 'text',
    null: null,
    'an array': [],
    'an object with a prototype of its own': Object.create(GOOD),
    'a field that is missing': WITHOUT_NAME,
    'a field that is undefined': { ...GOOD, note: undefined },
    'an unknown field': { ...GOOD, more: 1 },
    'an unknown field beside one that is hidden': Object.defineProperty({ ...WITHOUT_NAME, more: 1 }, 'name', { value: 'n' }),
    'an empty text': { ...GOOD, name: '' },
    'a number for a text': { ...GOOD, name: 1 },
    'an id in braces, which Joi takes': { ...GOOD, id: `{${GOOD.id}}` },
    'an id of another form': { ...GOOD, id: 'x' },
    'a text that breaks its pattern': { ...GOOD, path: 'A1' },
    'a time that is converted': { ...GOOD, at: '2026-11-21T10:30:00+01:00' },
    'a Date': { ...GOOD, at: new Date(GOOD.at) },
    'a day that is not': { ...GOOD, at: '2026-02-30T09:30:00.000Z' },
    'a time of as many characters that is none': { ...GOOD, at: 'x'.repeat(24) },
    'no array': { ...GOOD, items: {} },
    'an array with a hole': { ...GOOD, items: new Array(1) },
    'an item that is wrong': { ...GOOD, items: [{ a: '1' }, { b: '2' }] },
};
for (const [name, value] of Object.entries(UNCERTAIN)) {
    t.test(`is not sure of ${name}`, async (t) => {
        t.equal(check(value), UNSURE);
    });
}

t.test('compiles nothing that it does not know', async (t) => {
    const unknown = [
        Joi.binary(),
        Joi.number().multiple(2),
        Joi.number().max(Joi.ref('other')),
        Joi.array().max(Joi.ref('other')),
        Joi.string().valid('a').insensitive(),
        Joi.string().lowercase(),
        Joi.string().min(3),
        Joi.string().pattern(/a/),
        Joi.string().pattern(LETTERS, { invert: true }),
        Joi.string().empty(Joi.string().pattern(LETTERS)),
        Joi.string().prefs({ convert: false }),
        Joi.object({ a: Joi.string() }).unknown(),
        Joi.object({ a: Joi.string() }).min(1),
        Joi.object().custom((value) => value),
        Joi.any().custom((value) => value),
        Joi.boolean().custom((value) => value),
        Joi.string().invalid(Joi.ref('other')),
        Joi.object({ a: Joi.string(), b: Joi.string() }).and('a', 'b'),
        Joi.object({ a: Joi.object().default({ b: 1 }) }),
        Joi.object({ a: Joi.string().default(() => 'b') }),
        Joi.array().min(1),
        Joi.array().items(Joi.string(), Joi.object()),
    ];
    for (const schema of unknown) {
        t.throws(() => compiled(schema.describe(), [LETTERS]), { message: /^Cannot compile/ });
    }
});

t.test('makes of an investigation what its schema makes of it', async (t) => {
    const body = {
        actors: {
            assets: [{ link: 'https://a', shortname: 'db1', hostname: 'db1.example.com', fqdn: 'db1.example.com' }],
            users: [{ emails: '', link: 'https://u', name: 'Ann' }],
        },
        investigationRrn: 'rrn:investigation:eu:1',
        investigationId: GOOD.id,
        link: 'https://i',
        title: 'Title',
        timestamp: GOOD.at,
    };
    const bySchema = { ...investigationCreated, name: 'another' };
    t.equal(eventBody(investigationCreated, body), eventBody(bySchema, body));
    const early = { ...body, timestamp: '2026-11-21T10:30:00+01:00' };
    t.equal(eventBody(investigationCreated, early), eventBody(bySchema, early));
    t.throws(() => eventBody(investigationCreated, { ...body, title: '' }), { code: 'INVALID_INPUT', field: 'title' });
});

const fields = Joi.object({
    id: Joi.any().strip(),
    port: Joi.number().integer().min(0).max(9).required(),
    other: Joi.number().integer().allow(null).invalid(7),
    proto: Joi.string().valid('tcp', 'udp').default('tcp'),
    key: Joi.string().max(3).allow(null).default(null),
    name: Joi.string().pattern(LETTERS).allow('').max(3).messages({ 'string.max': 'too long' }).empty(Joi.valid('', null)),
    flag: Joi.boolean().allow(null),
    time: Joi.date().iso().allow(null),
    data: Joi.object(),
    list: Joi.array().max(2),
    named: Joi.array()
        .items(Joi.object({ name: Joi.string().required().empty(null) }))
        .max(2),
}).label('fields');
const checkFields = compiled(fields.describe(), [LETTERS]);

t.test('leaves out, fills in and takes for absent what the schema does', async (t) => {
    const given = {
        id: {},
        port: 1,
        other: null,
        name: '',
        flag: false,
        time: null,
        data: { a: 1 },
        list: [null, {}],
        named: [{ name: 'a' }],
    };
    const taken = {
        port: 1,
        other: null,
        proto: 'tcp',
        key: null,
        flag: false,
        time: null,
        data: { a: 1 },
        list: [null, {}],
        named: [{ name: 'a' }],
    };
    t.strictSame(checkFields(given), taken);
    t.equal(JSON.stringify(checkFields(given)), JSON.stringify(taken));
    t.strictSame(checkFields({ port: 9, proto: 'udp', key: 'abc', name: 'abc' }), { port: 9, proto: 'udp', key: 'abc', name: 'abc' });
});

t.test('makes of any value what its schema makes of it, or is not sure', async (t) => {
    const values = [0, -0, 1, 7, 9, 10, 1.5, -1, 2 ** 53, Number.NaN, '', 'a', 'abc', 'abcd', '1', 'tcp', 'TCP', ' a', null, undefined];
    const more = [
        true,
        'true',
        [],
        [undefined],
        [1, 2],
        [1, 2, 3],
        [{ name: 'a' }],
        [{ name: null }],
        {},
        { a: 1 },
        new Date(0),
        '2026-01-01',
    ];
    const field = fc.constantFrom<unknown>(...values, ...more);
    const keys = ['id', 'port', 'other', 'proto', 'key', 'name', 'flag', 'time', 'data', 'list', 'named', 'unknown'];
    let sure = 0;
    fc.assert(
        fc.property(
            fc.constantFrom(0, 1, 9),
            fc.dictionary(fc.constantFrom(...keys), field, { maxKeys: 4, noNullPrototype: true }),
            (port, given) => {
                const value = { port, ...given };
                const [checked, { value: bySchema, error }] = [checkFields(value), fields.validate(value)];
                sure += Number(checked !== UNSURE);
                return checked === UNSURE || (error === undefined && t.strictSame(checked, bySchema));
            },
        ),
        { numRuns: 2000 },
    );
    t.ok(sure > 100, `${sure} of 2000`);
});

t.test('a quick schema takes, makes and refuses what its schema does', async (t) => {
    const options = { convert: true };
    for (const slow of [fields, schema, fields.or('key', 'name')]) {
        const quick = quickly(slow, [LETTERS]);
        for (const value of [
            { port: 1, proto: 'udp', key: 'ab' },
            { port: '1' },
            { port: 1, more: 1 },
            GOOD,
            { ...GOOD, id: 'x' },
            null,
            {},
        ]) {
            const { value: made, error } = slow.validate(value, options);
            t.strictSame(quick.validate(value, options).value, made);
            t.equal(quick.validate(value, options).error?.message, error?.message);
            const answer = quick.validateAsync(value, options);
            await (error === undefined ? t.resolveMatch(answer, made ?? {}) : t.rejects(answer, { message: error.message }));
        }
        t.strictSame(quick.describe(), slow.describe());
        t.ok(Joi.isSchema(quick));
    }
});

t.test('a value without a prototype, as hapi has the parameters of a request, is one of an object', async (t) => {
    const bare = Object.assign(Object.create(null), { port: 1 });
    t.strictSame(checkFields(bare), fields.validate({ port: 1 }).value);
});
