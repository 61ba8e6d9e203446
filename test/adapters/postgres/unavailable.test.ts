import t from 'tap';
import { isUniqueViolation, storeError } from '../../../adapters/postgres/unavailable.ts';
import { ScanwireError } from '../../../lib/scanwire-error.ts';

const withCode = (code: string): Error => Object.assign(new Error('password of scanner'), { code });

t.test('takes errors of connection, server and driver for UNAVAILABLE, and repeats none of their text', async (t) => {
    const errors = ['ECONNREFUSED', 'ECONNRESET', '57P01', '08006', '53300', '28P01', '3D000', '40P01'].map(withCode);
    for (const error of [
        ...errors,
        new Error('Connection terminated unexpectedly'),
        new Error('timeout exceeded when trying to connect'),
    ]) {
        const mapped = storeError(error);
        t.ok(mapped instanceof ScanwireError);
        t.match(mapped, { code: 'UNAVAILABLE', cause: error });
        t.notMatch(mapped, { message: /scanner|terminated|exceeded/ });
    }
});

t.test('says in words what a wrong DATABASE_URL comes to', async (t) => {
    t.match(storeError(withCode('3D000')), { message: 'The database cannot be used now: the server has no database of this name (3D000)' });
    t.match(storeError(withCode('57P01')), { message: 'The database cannot be used now (57P01)' });
});

t.test('leaves errors of a statement, and our own, as they are', async (t) => {
    for (const error of [withCode('42601'), withCode('23505'), new Error('other'), new ScanwireError('NOT_FOUND', 'x'), 'text']) {
        t.equal(storeError(error), error);
    }
});

t.test('knows a unique violation', async (t) => {
    t.same([withCode('23505'), withCode('23503'), null].map(isUniqueViolation), [true, false, false]);
});
