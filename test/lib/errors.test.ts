import t from 'tap';
import { errorCode, optionalPackage } from '../../lib/errors.ts';

const withCode = (code: unknown): Error => Object.assign(new Error('secret text'), { code });

t.test('shows an error code only when it is one', async (t) => {
    t.equal(errorCode(withCode('ECONNRESET')), 'ECONNRESET');
    t.equal(errorCode(withCode('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')), 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE');
    for (const code of ['text with blanks', 'lower', 7, null, 'X'.repeat(70), 'A\nB']) {
        t.equal(errorCode(withCode(code)), '');
    }
});

t.test('names a package that is not installed, and the line that installs it', async (t) => {
    const loading = (load: () => Promise<object>): Promise<object> => optionalPackage('pg', 'DATABASE_URL', load);
    t.equal(await loading(async () => t), t);
    const missing = Object.assign(new Error('secret path'), { code: 'ERR_MODULE_NOT_FOUND' });
    await t.rejects(
        loading(() => Promise.reject(missing)),
        { code: 'MISCONFIGURED', message: 'DATABASE_URL needs the package pg: npm install pg', cause: missing },
    );
    await t.rejects(
        loading(() => Promise.reject(withCode('ERR_DLOPEN_FAILED'))),
        { code: 'MISCONFIGURED', message: 'Cannot load pg for DATABASE_URL (ERR_DLOPEN_FAILED)' },
    );
});
