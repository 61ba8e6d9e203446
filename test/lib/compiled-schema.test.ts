import Joi from 'joi';
import t from 'tap';
import { compiled, UNSURE } from '../../lib/compiled-schema.ts';
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
        Joi.number(),
        Joi.string().valid('a'),
        Joi.string().lowercase(),
        Joi.string().max(3),
        Joi.string().pattern(/a/),
        Joi.string().pattern(LETTERS, { invert: true }),
        Joi.object({ a: Joi.string() }).unknown(),
        Joi.object({ a: Joi.string(), b: Joi.string() }).and('a', 'b'),
        Joi.array(),
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
