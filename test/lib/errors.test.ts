import t from 'tap';
import { errorCode } from '../../lib/errors.ts';

const withCode = (code: unknown): Error => Object.assign(new Error('secret text'), { code });

t.test('shows an error code only when it is one', async (t) => {
    t.equal(errorCode(withCode('ECONNRESET')), 'ECONNRESET');
    t.equal(errorCode(withCode('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE')), 'ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE');
    for (const code of ['text with blanks', 'lower', 7, null, 'X'.repeat(70), 'A\nB']) {
        t.equal(errorCode(withCode(code)), '');
    }
});
