import Joi from 'joi';
import t from 'tap';
import { timestampFormat } from '../../../lib/timestamp.ts';
import { rowForms } from '../../../plugins/rest-api-v2/row-forms.ts';

/** Every kind of value that a store may give, and what JSON makes of it. */
const VALUES: readonly unknown[] = [
    '',
    'plain',
    'a "quote", a \\, a / and a \u007f',
    'line\nand tab\t, \u0000 and \u001f',
    'größe, 中文 and \u2028',
    'a pair 😀',
    'half a pair \ud83d, and the other \ude00',
    0,
    -0,
    1.5,
    1e21,
    -1e-7,
    Number.NaN,
    Number.POSITIVE_INFINITY,
    true,
    false,
    { 'ke"y': ['\ud800', null, undefined], nested: { at: new Date(0) } },
    [],
    new Date(1),
    Object('boxed'),
    { toJSON: () => 'its own' },
    // What JSON leaves out.
    () => 'a function',
    Symbol('no text'),
];

t.test('a value goes out as JSON writes it', async (t) => {
    const names = ['first', 'na"me', 'last'];
    const { form } = rowForms(
        { type: 'object', keys: Object.fromEntries(names.map((name) => [name, { type: 'any' }])) },
        timestampFormat(),
    );
    for (const value of VALUES) {
        const rows = names.map((named) => Object.fromEntries(names.map((name) => [name, name === named ? value : 1])));
        const each = rows.map((row) => JSON.stringify(row));
        t.strictSame(
            rows.map((row) => form('json').text([row])),
            each,
        );
        t.equal(form('json').text(rows), each.join(','));
        t.equal(form('ndjson').text(rows), each.map((text) => `${text}\n`).join(''));
    }

    t.equal(form('json').text([]), '');
    t.equal(form('json', new Set()).text([{ first: 1 }]), '{}');
    t.throws(() => form('json').text([{ first: 1n }]), TypeError);
});

t.test('fractions of a second are cut off, before 1970 too, whatever was written before', async (t) => {
    const { form } = rowForms(Joi.object({ at: Joi.date().required() }).describe(), timestampFormat());
    const written = (...times: readonly unknown[]): unknown => JSON.parse(`[${form('json').text(times.map((at) => ({ at })))}]`);
    t.strictSame(written(new Date(999), new Date(0), new Date(1000), new Date(-1), new Date(-1000), 'no time', 1999), [
        { at: '1970-01-01T00:00:00+00:00' },
        { at: '1970-01-01T00:00:00+00:00' },
        { at: '1970-01-01T00:00:01+00:00' },
        { at: '1969-12-31T23:59:59+00:00' },
        { at: '1969-12-31T23:59:59+00:00' },
        { at: null },
        { at: '1970-01-01T00:00:01+00:00' },
    ]);
});
