import Joi from 'joi';
import t from 'tap';
import type { StandardSchema } from '../../../../lib/application-schema.ts';
import { timestamp } from '../../../../lib/timestamp.ts';
import { eventBody } from '../../../../lib/webhooks/events/event-body.ts';
import { type EventKind, investigationCreated } from '../../../../lib/webhooks/events/event-kinds.ts';

const investigation = {
    title: 'Suspicious sign-in',
    timestamp: '2026-11-21T10:30:00.5+01:00',
    link: 'https://example.com/i/1',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    actors: {
        assets: [{ shortname: 'db1', hostname: 'db1.example.com', link: 'https://example.com/a/1' }],
        users: [{ emails: '', link: 'https://example.com/u/1', name: 'Ann' }],
    },
};

const sent = (body: unknown): string => eventBody(investigationCreated, body);

t.test('puts the keys in the order of the specification, whatever their order was', async (t) => {
    t.equal(
        sent(investigation),
        '{"timestamp":"2026-11-21T09:30:00.500Z","title":"Suspicious sign-in","link":"https://example.com/i/1",' +
            '"investigationId":"8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa","investigationRrn":"rrn:investigation:eu:1:investigation:ABC",' +
            '"actors":{"users":[{"name":"Ann","link":"https://example.com/u/1","emails":""}],' +
            '"assets":[{"hostname":"db1.example.com","shortname":"db1","link":"https://example.com/a/1"}]}}',
    );
});

t.test('leaves out what is unknown and keeps what is known', async (t) => {
    const body = {
        ...investigation,
        description: 'Long text',
        actors: { users: [{ ...investigation.actors.users[0], distinguishedName: 'CN=Ann' }], assets: [] },
    };
    const parsed = JSON.parse(sent(body));
    t.equal(parsed.description, 'Long text');
    t.strictSame(Object.keys(parsed.actors.users[0]), ['name', 'distinguishedName', 'link', 'emails']);
    t.notOk('description' in JSON.parse(sent(investigation)));
});

t.test('names the field and the rule that it breaks, and never its value', async (t) => {
    const cases: [unknown, string][] = [
        [{ ...investigation, title: undefined }, 'title'],
        [{ ...investigation, secretKey: 'hunter2' }, 'secretKey'],
        [{ ...investigation, description: null }, 'description'],
        [{ ...investigation, investigationId: 'hunter2' }, 'investigationId'],
        [{ ...investigation, investigationRrn: 'hunter2' }, 'investigationRrn'],
        [{ ...investigation, timestamp: 'hunter2' }, 'timestamp'],
        [{ ...investigation, actors: { users: [{ name: 'Ann', emails: 'a@b' }], assets: [] } }, 'actors.users[0].link'],
        [{ ...investigation, actors: { users: [] } }, 'actors.assets'],
    ];
    for (const [body, field] of cases) {
        const error = t.throws(() => sent(body), { code: 'INVALID_INPUT', field }) as Error;
        t.notMatch(error.message, /hunter2| is invalid$/, field);
    }

    for (const body of [null, undefined, 'text', 7, []]) {
        t.throws(() => sent(body), { code: 'INVALID_INPUT' });
    }
});

t.test('refuses what is nested too deep, and what JSON has no words for, whatever its schema lets through', (t) => {
    const nested = (levels: number): unknown => {
        let value: unknown = '[{"\\\\';
        for (let level = 0; level < levels; level += 1) {
            value = level % 2 === 0 ? [value] : { a: value };
        }
        return { a: value };
    };
    const visit = (value: unknown): number => (Array.isArray(value) ? value.reduce((sum, item) => sum + visit(item), 1) : 1);
    const schema: StandardSchema = {
        '~standard': { version: 1, vendor: 'x', validate: (value) => (visit((value as { a: unknown }).a) > 0 ? { value } : {}) },
    };
    const kinds: Record<string, EventKind> = {
        open: { name: 'open', schema: Joi.object().unknown() },
        recursive: { name: 'recursive', schema, fields: ['a'], jsonSchema: { properties: { a: {} } } },
    };
    const arrays = (levels: number): unknown => ({ a: JSON.parse('['.repeat(levels) + ']'.repeat(levels)) });
    for (const [name, kind] of Object.entries(kinds)) {
        t.ok(eventBody(kind, arrays(999)));
        for (const levels of [1_000, 20_000, 500_000]) {
            const message = `Body of ${name} is nested too deep: it may have 1000 levels at most`;
            t.throws(() => eventBody(kind, arrays(levels)), { code: 'INVALID_INPUT', field: 'body', message }, `${name}, ${levels}`);
        }
    }
    const { open } = kinds as { open: EventKind };
    t.ok(eventBody(open, nested(999)));
    t.throws(() => eventBody(open, nested(1_000)), { code: 'INVALID_INPUT', field: 'body' });
    for (const text of ['"[{', '\\"[{', '\\\\"[{', '[{\\', '[{"']) {
        t.ok(eventBody(open, { a: text.repeat(3_000), b: text }), 'what looks like levels in a text is none');
        t.throws(() => eventBody(open, { a: text.repeat(3_000), ...(arrays(1_000) as object), b: text }), {
            code: 'INVALID_INPUT',
            field: 'body',
        });
        t.throws(() => eventBody(open, { b: text.repeat(3_000), c: [text], ...(arrays(1_000) as object) }), {
            code: 'INVALID_INPUT',
            field: 'body',
        });
    }
    t.ok(eventBody(open, { a: Array.from({ length: 5_000 }, () => [{ b: '[[{' }]) }), 'many are not deep');

    const circle: Record<string, unknown> = {};
    circle.a = circle;
    for (const body of [circle, { a: 1n }]) {
        t.throws(() => eventBody(open, body), { code: 'INVALID_INPUT', field: 'body', message: /cannot be written as JSON/ });
    }
    t.end();
});

t.test('takes dates and ISO 8601 times with a zone, and nothing else, as times', async (t) => {
    const time = (value: unknown): unknown => JSON.parse(sent({ ...investigation, timestamp: value })).timestamp;
    t.equal(time(new Date('2026-11-21T09:30:00Z')), '2026-11-21T09:30:00.000Z');
    t.equal(time('2026-11-21T09:30:00Z'), '2026-11-21T09:30:00.000Z');
    t.equal(time('2026-11-21t09:30z'), '2026-11-21T09:30:00.000Z');
    t.equal(time('2026-11-21T09:30:00.123456789-0530'), '2026-11-21T15:00:00.123Z');
    t.equal(time('2024-02-29T00:00:00Z'), '2024-02-29T00:00:00.000Z');

    const refused = [
        '2026-11-21T09:30:00',
        '2026-11-21',
        '2026-02-30T00:00:00Z',
        '2026-13-01T00:00:00Z',
        '21 Nov 2026',
        '',
        1795253400000,
        new Date(Number.NaN),
        null,
    ];
    for (const value of refused) {
        t.throws(() => time(value), { code: 'INVALID_INPUT', field: 'timestamp' }, String(value));
    }
});

t.test('is compact UTF-8 that survives every text', async (t) => {
    const title = 'a\u0000b\u2028c\ud800d😀"\\';
    const text = sent({ ...investigation, title });
    t.equal(JSON.parse(Buffer.from(text).toString()).title, title);
    t.notOk(text.includes('\n') || text.includes('\u0000'));
    t.equal(sent(JSON.parse(`{"__proto__":{"a":1},${JSON.stringify(investigation).slice(1)}`)), sent(investigation));
});

t.test('keeps the order of a kind of the host, nested and in arrays', async (t) => {
    const kind: EventKind = {
        name: 'scan.finished',
        schema: Joi.object({
            at: timestamp(),
            hosts: Joi.array().items(Joi.object({ b: Joi.any(), a: Joi.any() })),
            free: Joi.object().unknown(),
        }),
    };
    t.equal(
        eventBody(kind, { free: { z: 1, y: 2 }, hosts: [{ a: 1, b: 2 }], at: '2026-01-01T00:00:00Z' }),
        '{"at":"2026-01-01T00:00:00.000Z","hosts":[{"b":2,"a":1}],"free":{"z":1,"y":2}}',
    );
});
