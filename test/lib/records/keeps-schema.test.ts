import fc from 'fast-check';
import t from 'tap';
import { isBase64 } from '../../../lib/records/base64.ts';
import { recordSchema } from '../../../lib/records/index.ts';
import { keepsSchema } from '../../../lib/records/keeps-schema.ts';
import { arbitraryMutant, arbitraryRecord } from './arbitrary-record.ts';

const RUNS = 100_000;

function joiAccepts(value: unknown): boolean {
    return recordSchema.validate(value).error === undefined && !Object.hasOwn(value as object, '__proto__');
}

t.test(`agrees with Joi on ${RUNS} records and mutants`, (t) => {
    const count = { accepted: 0, refused: 0 };
    fc.assert(
        fc.property(fc.oneof(arbitraryRecord, arbitraryMutant), (record) => {
            const kept = keepsSchema(record);
            count[kept ? 'accepted' : 'refused'] += 1;
            return kept === joiAccepts(record);
        }),
        { numRuns: RUNS },
    );
    t.ok(count.accepted > RUNS / 5 && count.refused > RUNS / 5, `${count.accepted} accepted, ${count.refused} refused`);
    t.end();
});

t.test('agrees with Joi on values that are no records', (t) => {
    fc.assert(fc.property(fc.jsonValue(), (value) => !keepsSchema(value)));
    const record = { data: '', host: 'a.example', ip: '192.0.2.1', port: 1 };
    for (const value of [null, undefined, 1, 'x', [], [record], () => {}, new Date(), Object.create(record)]) {
        t.equal(keepsSchema(value), false);
    }

    t.equal(keepsSchema(record), true);
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
