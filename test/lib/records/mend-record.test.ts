import { Readable } from 'node:stream';
import fc from 'fast-check';
import t from 'tap';
import { checkRecord, mendRecord, readRecords } from '../../../lib/records/index.ts';
import { arbitraryMutant, arbitraryRecord } from './arbitrary-record.ts';

const strict = { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', path: '/', port: 443 };
const { path: _, ...withoutPath } = strict;

t.test('mends each kind and says so', (t) => {
    t.same(mendRecord({ ...strict, port: '443' }, 'import'), { value: strict, mends: ['port_string'] });
    t.same(mendRecord({ ...strict, vhost: null }, 'import'), { value: strict, mends: ['vhost_null'] });
    t.same(mendRecord(withoutPath, 'import'), { value: strict, mends: ['path_missing'] });
    t.same(mendRecord({ ...strict, subject: { C: 'DE', CN: 'a', OU: 'b', O: ['x'], emailAddress: 'c@d' } }, 'import'), {
        value: { ...strict, subject: { CN: 'a', OU: 'b' } },
        mends: ['subject_parts'],
    });
    t.same(mendRecord({ ...withoutPath, port: '8443', vhost: null, subject: { C: 'DE' } }, 'import'), {
        value: { ...strict, port: 8443, subject: {} },
        mends: ['port_string', 'vhost_null', 'path_missing', 'subject_parts'],
    });
    t.end();
});

t.test('knows no other profile', (t) => {
    for (const profile of ['nope', 'toString', ''] as string[] as 'import'[]) {
        const error = { code: 'MISCONFIGURED', field: 'mend', message: 'mend must be one of import' };
        t.throws(() => mendRecord(strict, profile), error);
        t.throws(() => readRecords(Readable.from([]), { mend: profile }), error);
    }

    t.end();
});

t.test('leaves alone what is no such case', (t) => {
    const cases = [
        { ...strict, port: '' },
        { ...strict, port: '0443' },
        { ...strict, port: '443 ' },
        { ...strict, port: '1e3' },
        { ...strict, port: '443443' },
        { ...strict, vhost: 7 },
        { ...strict, path: '' },
        { ...strict, path: null },
        { ...strict, subject: null },
        { ...strict, subject: [] },
        { ...strict, subject: 'CN=a' },
        { ...strict, extra: 1 },
        null,
        7,
        'x',
        [strict],
    ];
    for (const value of cases) {
        const mended = mendRecord(value, 'import');
        t.equal(mended.value, value);
        t.same(mended.mends, []);
        t.equal(checkRecord(value).ok, false);
    }

    t.end();
});

t.test('changes nothing in a strict record but its missing path, and is done after one time', (t) => {
    fc.assert(
        fc.property(fc.oneof(arbitraryRecord, arbitraryMutant), (value) => {
            const before = JSON.stringify(value);
            const once = mendRecord(value, 'import');
            const twice = mendRecord(once.value, 'import');
            const kept = !checkRecord(value).ok || (checkRecord(once.value).ok && once.mends.every((kind) => kind === 'path_missing'));
            return kept && twice.mends.length === 0 && twice.value === once.value && JSON.stringify(value) === before;
        }),
        { numRuns: 5_000 },
    );
    t.end();
});

t.test('drops a hundred thousand parts of a subject in no time', (t) => {
    const subject = Object.fromEntries(Array.from({ length: 100_000 }, (_, index) => [`part${index}`, 'x']));
    t.same(mendRecord({ ...strict, subject: { ...subject, CN: 'a' } }, 'import').value, { ...strict, subject: { CN: 'a' } });
    t.end();
});
