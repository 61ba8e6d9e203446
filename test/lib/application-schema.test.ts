import Joi from 'joi';
import Joi17 from 'joi-17';
import t from 'tap';
import { z } from 'zod';
import { type ApplicationSchema, applicationSchemaRules, checkedBy, describedSchema } from '../../lib/application-schema.ts';
import { checked } from '../../lib/schema-validation.ts';
import { timestamp } from '../../lib/timestamp.ts';
import { eventBody } from '../../lib/webhooks/events/event-body.ts';
import { type EventKind, eventKinds } from '../../lib/webhooks/events/event-kinds.ts';

const shape = { at: z.iso.datetime(), hosts: z.array(z.object({ b: z.number(), a: z.string() })) };
const zod = z.object(shape);
const jsonSchema = z.toJSONSchema(zod) as NonNullable<ApplicationSchema['jsonSchema']>;
const body = { hosts: [{ a: 'x', b: 1 }], at: '2026-01-01T00:00:00Z' };

function warnings(act: () => void): readonly string[] {
    const said: string[] = [];
    const { emitWarning } = process;
    process.emitWarning = ((message: string, { code }: { code: string }) => said.push(`${code}: ${message}`)) as never;
    try {
        act();
    } finally {
        process.emitWarning = emitWarning;
    }

    return said;
}

function kindOf(schema: ApplicationSchema): EventKind {
    const kind = { name: 'scan.finished', ...schema };
    eventKinds([kind]);
    return kind;
}

for (const [name, joi] of [
    ['17', Joi17],
    ['18', Joi],
] as const) {
    t.test(`takes a schema of Joi ${name}, in its order and with its rules`, async (t) => {
        const schema = (joi as typeof Joi).object({
            at: timestamp(joi as typeof Joi).required(),
            hosts: (joi as typeof Joi).array().items((joi as typeof Joi).object({ b: joi.number(), a: joi.string() })),
        });
        const kind = kindOf({ schema });
        t.equal(eventBody(kind, body), '{"at":"2026-01-01T00:00:00.000Z","hosts":[{"b":1,"a":"x"}]}');
        t.throws(() => eventBody(kind, { ...body, at: 'soon' }), {
            code: 'INVALID_INPUT',
            field: 'at',
            message: /^Body of scan\.finished: at must be an ISO 8601 time/,
        });
        t.throws(() => eventBody(kind, { ...body, hosts: [{ a: 1 }] }), { code: 'INVALID_INPUT', field: 'hosts[0].a' });
        t.throws(() => eventBody(kind, undefined), { code: 'INVALID_INPUT' }, 'a body is needed though the schema does not say so');
    });
}

t.test('takes a Standard Schema with its fields and a JSON Schema', async (t) => {
    const said = warnings(() => {
        const kind = kindOf({ schema: zod, fields: ['hosts', 'at'], jsonSchema });
        t.equal(eventBody(kind, body), '{"hosts":[{"b":1,"a":"x"}],"at":"2026-01-01T00:00:00Z"}');
        t.throws(() => eventBody(kind, { ...body, hosts: [{ a: 'x' }] }), {
            code: 'INVALID_INPUT',
            field: 'hosts[0].b',
            message: /^Body of scan\.finished: hosts\[0\]\.b: /,
        });
        t.throws(() => eventBody(kind, undefined), { code: 'INVALID_INPUT', message: /^Body of scan\.finished: Invalid input/ });
    });
    t.strictSame(said, []);
});

t.test('warns of a Standard Schema without a JSON Schema, and leaves what is below its fields in its own order', async (t) => {
    const said = warnings(() => {
        const kind = kindOf({ schema: z.looseObject({ at: z.string() }), fields: ['at', 'hosts'] });
        t.equal(eventBody(kind, body), '{"at":"2026-01-01T00:00:00Z","hosts":[{"a":"x","b":1}]}');
        eventBody(kind, body);
    });
    t.equal(said.length, 1, 'once for each kind');
    t.match(said[0], /^SCANWIRE_OPEN_SCHEMA: Event kind scan\.finished: without jsonSchema/);
});

t.test('refuses a schema that answers by a promise', async (t) => {
    const schema = z.object({ at: z.string().refine(async () => true) });
    const late = { '~standard': { ...schema['~standard'], validate: async () => ({ value: {} }) } };
    // biome-ignore lint/suspicious/noThenProperty: a promise that is none of Node's
    const thenable = { then: (_: unknown, reject: (error: Error) => void) => reject(new Error('late')) };
    const own = { '~standard': { ...schema['~standard'], validate: () => thenable as unknown as Promise<{ value: unknown }> } };
    for (const answering of [late, own]) {
        t.throws(() => checkedBy(answering, {}, 'Body of x'), { code: 'MISCONFIGURED', message: /must answer at once/ });
    }
});

t.test('knows types, empties and order of fields from a JSON Schema', async (t) => {
    const described = describedSchema(
        {
            schema: zod,
            fields: ['when', 'gone', 'count', 'level', 'maybe', 'any'],
            jsonSchema: {
                properties: {
                    any: { $ref: '#/$defs/x' },
                    count: { type: 'integer' },
                    gone: { anyOf: [{ type: 'string', format: 'date-time' }, { type: 'null' }] },
                    level: { type: 'string', default: 'low' },
                    maybe: { type: ['string', 'null'] },
                    when: { type: 'string', format: 'date-time' },
                },
            },
        },
        'Resource /x',
    );
    t.strictSame(Object.entries(described.keys ?? {}), [
        ['when', { type: 'date' }],
        ['gone', { type: 'date', allow: [null] }],
        ['count', { type: 'number' }],
        ['level', { type: 'string', flags: { default: 'low' } }],
        ['maybe', { type: 'string', allow: [null] }],
        ['any', {}],
    ]);
});

t.test('refuses what is no schema of objects, and fields that do not fit', async (t) => {
    const rules = Joi.object(applicationSchemaRules);
    const joi = Joi17.object({});
    const cases: readonly (readonly [object, string, RegExp])[] = [
        [{ schema: Joi.string() }, 'schema', /^schema must be a Joi schema of an object, or a Standard Schema$/],
        [{ schema: Joi17.array() }, 'schema', /must be a Joi schema of an object/],
        [{ schema: {}, fields: ['a'] }, 'schema', /must be a Joi schema/],
        [{}, 'schema', /required/],
        [{ schema: zod }, 'fields', /required/],
        [{ schema: zod, fields: [] }, 'fields', /at least 1/],
        [{ schema: zod, fields: ['nothing'], jsonSchema }, 'fields', /has nothing, which is no property of jsonSchema/],
        [{ schema: joi, fields: ['a'] }, 'fields', /not allowed/],
        [{ schema: joi, jsonSchema: {} }, 'jsonSchema', /not allowed/],
    ];
    for (const [given, field, message] of cases) {
        t.throws(() => checked(rules, given), { field, message });
    }

    t.equal(checked<{ schema: unknown }>(rules, { schema: joi }).schema, joi, 'passes through as it is');
    t.equal(checked<{ schema: unknown }>(rules, { schema: zod, fields: ['at'] }).schema, zod);
});
