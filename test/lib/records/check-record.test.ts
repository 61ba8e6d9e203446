import { Ajv2020 } from 'ajv/dist/2020.js';
import fc from 'fast-check';
import Joi from 'joi';
import t from 'tap';
import { isBase64 } from '../../../lib/records/base64.ts';
import { compiled, isRecord } from '../../../lib/records/check-record.ts';
import { checkRecord, RECORD_SCHEMA_VERSION, recordJsonSchema, recordSchema } from '../../../lib/records/index.ts';
import { arbitraryMutant, arbitraryRecord } from './arbitrary-record.ts';

const minimal = { data: 'SFRUUC8xLjEgMjAwIE9LDQoNCg==', host: 'www.example.com', ip: '192.0.2.7', port: 443 };
const whole = { ...minimal, path: '/', vhost: 'www.example.com:443', subject: { OU: 'Web', CN: '*.example.com' } };

/** The problems of the minimal record with these fields changed, as `field reason`. */
function problems(changes: object): string[] {
    const result = checkRecord({ ...minimal, ...changes });
    return result.ok ? [] : result.problems.map(({ field, reason }) => `${field} ${reason}`);
}

t.test('accepts records with and without the optional fields', (t) => {
    t.same(checkRecord(minimal), { ok: true, record: minimal });
    t.same(checkRecord(whole), { ok: true, record: whole });
    t.same(problems({ subject: {} }), []);
    t.same(problems({ vhost: '', data: '' }), []);
    t.end();
});

t.test('names every field that is wrong, and never its value', (t) => {
    const result = checkRecord({
        data: 'hunter2!',
        ip: 'hunter2',
        port: 'hunter2',
        path: 'hunter2',
        subject: { CN: 7, O: 'hunter2' },
        x: 1,
    });
    t.same(result, {
        ok: false,
        problems: [
            { field: 'data', reason: 'must be base64: standard alphabet, padded, without line breaks' },
            { field: 'host', reason: 'is required' },
            { field: 'ip', reason: 'must be an IPv4 or IPv6 address' },
            { field: 'port', reason: 'must be a number' },
            { field: 'path', reason: 'must begin with /' },
            { field: 'subject.CN', reason: 'must be a string' },
            { field: 'subject.O', reason: 'is not allowed' },
            { field: 'x', reason: 'is not allowed' },
        ],
    });
    t.notMatch(JSON.stringify(result), 'hunter2');
    t.end();
});

t.test('converts nothing', (t) => {
    t.same(problems({ port: '443' }), ['port must be a number']);
    t.same(problems({ vhost: null }), ['vhost must be a string']);
    t.same(problems({ host: ' www.example.com ' }), ['host must be a name or an IP address']);
    t.same(problems({ subject: '{"CN":"x"}' }), ['subject must be an object']);
    t.end();
});

t.test('keeps the ranges of ports and paths', (t) => {
    t.same(problems({ port: 1 }), []);
    t.same(problems({ port: 65535 }), []);
    for (const port of [0, -1, 65536, 443.5]) {
        t.match(problems({ port }), [/^port must be/]);
    }

    t.same(problems({ path: '' }), ['path must begin with /']);
    t.end();
});

t.test('tells addresses from what looks like them', (t) => {
    for (const ip of ['::', '::1', '2001:db8::7', '1:2:3:4:5:6:7:8', '::ffff:192.0.2.7', '1::8', '255.255.255.255']) {
        t.same(problems({ ip, host: ip }), [], ip);
    }

    for (const ip of ['1.2.3', '1.2.3.256', '01.2.3.4', '1:2:3', ':::', '1::2::3', '12345::', 'fe80::1%eth0', '[::1]', '10.0.0.0/8', '']) {
        t.same(problems({ ip }), ['ip must be an IPv4 or IPv6 address'], ip);
    }

    t.end();
});

t.test('tells host names from what looks like them', (t) => {
    for (const host of ['localhost', 'a.b.example.', 'xn--mller-kva.example', '_sip.example', '1.example', 'x'.repeat(63)]) {
        t.same(problems({ host }), [], host);
    }

    for (const host of ['', '.', 'a..b', '-a.example', 'a b', 'http://a', 'a:443', 'müller.example', '1.2.3.400', `${'x.'.repeat(127)}x`]) {
        t.same(problems({ host }), ['host must be a name or an IP address'], host);
    }

    t.end();
});

t.test('accepts padded base64 of the standard alphabet only', (t) => {
    for (const data of ['AA==', 'AAA=', 'AAAA', '+/+/']) {
        t.same(problems({ data }), [], data);
    }

    for (const data of ['AA', 'AA=', 'A===', 'AAAA=', 'A-_=', 'AAAA\n', 'AAAA\r\nAAAA', ' AAAA']) {
        t.match(problems({ data }), [/^data must be base64/], JSON.stringify(data));
    }

    t.end();
});

t.test('checks a response of many megabytes', (t) => {
    const data = Buffer.alloc(12_000_000, 'x').toString('base64');
    t.same(problems({ data }), []);
    t.match(problems({ data: `${data}!` }), [/^data must be base64/]);

    const accepts = new Ajv2020({ strict: true }).compile(recordJsonSchema);
    t.equal(accepts({ ...minimal, data }), true);
    t.equal(accepts({ ...minimal, data: `${data}!` }), false);
    t.end();
});

t.test('agrees with Joi and the JSON Schema on a key named __proto__', (t) => {
    const accepts = new Ajv2020({ strict: true }).compile(recordJsonSchema);
    const text = JSON.stringify(minimal);
    for (const hidden of [
        text.replace('{', '{"__proto__":{"port":1},'),
        text.replace('{', '{"subject":{"__proto__":{"CN":"a"}},'),
        `{"__proto__":${text}}`,
        `{"__proto__":${text},"data":1}`,
    ]) {
        const value = JSON.parse(hidden);
        t.equal(checkRecord(value).ok, false, hidden);
        t.not(recordSchema.validate(value).error, undefined, hidden);
        t.equal(accepts(value), false, hidden);
    }

    t.same(problems(JSON.parse('{"__proto__":{"port":1},"port":"1"}')), ['port must be a number', '__proto__ is not allowed']);
    t.same(checkRecord(JSON.parse(`{"__proto__":${text},"host":"a","ip":"::","port":1}`)), {
        ok: false,
        problems: [
            { field: 'data', reason: 'is required' },
            { field: '__proto__', reason: 'is not allowed' },
        ],
    });
    t.end();
});

t.test('refuses what is not an object', (t) => {
    for (const value of [null, undefined, 7, 'x', [], [minimal], true]) {
        t.same(checkRecord(value), {
            ok: false,
            problems: [{ field: '', reason: value === undefined ? 'is required' : 'must be an object' }],
        });
    }

    t.end();
});

t.test('refuses a key named __proto__', (t) => {
    const text = JSON.stringify(minimal).replace('{', '{"__proto__":{"port":1},"subject":{"__proto__":1},');
    t.same(checkRecord(JSON.parse(text)), {
        ok: false,
        problems: [
            { field: '__proto__', reason: 'is not allowed' },
            { field: 'subject.__proto__', reason: 'is not allowed' },
        ],
    });
    t.end();
});

t.test('says little about very many or very long keys', (t) => {
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`${'k'.repeat(100)}${index}`, 1]));
    const result = problems(many);
    t.equal(result.length, 20);
    t.ok(result.every((text) => text.length < 100));
    t.end();
});

t.test('has a JSON Schema with a versioned id that needs no extension', (t) => {
    t.equal(recordJsonSchema.$id, `urn:scanwire:https-record:${RECORD_SCHEMA_VERSION}`);
    t.equal(recordJsonSchema.$schema, 'https://json-schema.org/draft/2020-12/schema');
    t.same(recordJsonSchema.required, ['data', 'host', 'ip', 'port']);
    t.equal(new Ajv2020({ strict: true }).validateSchema(recordJsonSchema), true);
    t.end();
});

t.test('agrees with its JSON Schema on every record', (t) => {
    const accepts = new Ajv2020({ strict: true }).compile(recordJsonSchema);
    const count = { accepted: 0, refused: 0 };
    fc.assert(
        fc.property(fc.oneof(arbitraryRecord, arbitraryMutant), (record) => {
            const { ok } = checkRecord(record);
            count[ok ? 'accepted' : 'refused'] += 1;
            return ok === accepts(record);
        }),
        { numRuns: 5_000 },
    );
    t.ok(count.accepted > 1_000 && count.refused > 1_000, `${count.accepted} accepted, ${count.refused} refused`);
    t.end();
});

t.test('looks at no more unknown keys than it tells of', (t) => {
    let looks = 0;
    const many = Object.fromEntries(Array.from({ length: 1000 }, (_, index) => [`k${index}`, 1]));
    const watched = (object: object): object =>
        new Proxy(object, {
            get(target, key) {
                looks += String(key).startsWith('k') ? 1 : 0;
                return Reflect.get(target, key);
            },
        });
    const unknown = (place: string): string[] => Array.from({ length: 20 }, (_, index) => `${place}k${index} is not allowed`);

    const result = checkRecord(watched({ ...many, ...minimal }));
    t.same(result.ok ? [] : result.problems.map(({ field, reason }) => `${field} ${reason}`), unknown(''));
    t.same(problems({ subject: watched({ ...many, CN: 7 }) }), ['subject.CN must be a string', ...unknown('subject.')].slice(0, 20));
    t.ok(looks < 200, `${looks} looks`);
    t.end();
});

const RUNS = 100_000;

function joiAccepts(value: unknown): boolean {
    return recordSchema.validate(value).error === undefined;
}

t.test(`agrees with Joi on ${RUNS} records and mutants`, (t) => {
    const count = { accepted: 0, refused: 0 };
    fc.assert(
        fc.property(fc.oneof(arbitraryRecord, arbitraryMutant), (record) => {
            const kept = isRecord(record);
            count[kept ? 'accepted' : 'refused'] += 1;
            return kept === joiAccepts(record);
        }),
        { numRuns: RUNS },
    );
    t.ok(count.accepted > RUNS / 5 && count.refused > RUNS / 5, `${count.accepted} accepted, ${count.refused} refused`);
    t.end();
});

t.test('agrees with Joi on values that are no records', (t) => {
    fc.assert(fc.property(fc.jsonValue(), (value) => !isRecord(value)));
    const record = { data: '', host: 'a.example', ip: '192.0.2.1', port: 1 };
    for (const value of [null, undefined, 1, 'x', [], [record], () => {}, new Date(), Object.create(record)]) {
        t.equal(isRecord(value), false);
    }

    t.equal(isRecord(record), true);
    t.end();
});

t.test('knows base64 from everything else', (t) => {
    const strict = /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/;
    const character = fc.oneof(
        { weight: 30, arbitrary: fc.constantFrom(...'ABCxyz0189+/') },
        { weight: 3, arbitrary: fc.constant('=') },
        { weight: 1, arbitrary: fc.constantFrom('-', '_', '\n', ' ', '\0', 'é', '\u0141', '\u0131', '😀', '\uD800') },
    );
    const count = { accepted: 0, refused: 0 };
    fc.assert(
        fc.property(fc.string({ unit: character, maxLength: 24 }), (text) => {
            const expected = strict.test(text);
            count[expected ? 'accepted' : 'refused'] += 1;
            return isBase64(text) === expected;
        }),
        { numRuns: 50_000 },
    );
    t.ok(count.accepted > 2_000 && count.refused > 2_000, `${count.accepted} accepted, ${count.refused} refused`);
    t.end();
});

t.test('knows base64 wherever a long text is wrong', (t) => {
    const long = 'QUJD'.repeat(50_000);
    t.equal(isBase64(long), true);
    t.equal(isBase64(`${long}QQ==`), true);
    for (const at of [0, 65_535, 65_536, 131_071, long.length - 1]) {
        for (const wrong of ['=', '-', ' ', '\u0141']) {
            t.equal(isBase64(long.slice(0, at) + wrong + long.slice(at + 1)), wrong === '=' && at === long.length - 1, `${wrong} at ${at}`);
        }
    }

    t.end();
});

t.test('passes over no rule that a schema may get', (t) => {
    for (const [schema, rule] of [
        [Joi.boolean(), 'boolean'],
        [Joi.string().alphanum(), 'alphanum'],
        [Joi.object({ port: Joi.number().multiple(2) }), 'multiple'],
    ] as const) {
        t.throws(() => compiled(schema.describe()), { message: `The record schema has a rule that is not compiled: ${rule}` });
    }
    t.end();
});
