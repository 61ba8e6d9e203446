import t from 'tap';
import { handshakeCode } from '../../../lib/egress/handshake-code.ts';

t.test('names what a code of OpenSSL means, in the spelling of every Node', async (t) => {
    t.equal(handshakeCode('ERR_SSL_WRONG_VERSION_NUMBER'), 'protocol_error');
    t.equal(handshakeCode('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 'tls_client_cert_required');
    t.equal(handshakeCode('ERR_SSL_SSLV3_ALERT_NO_CERTIFICATE'), 'tls_client_cert_required');
    t.equal(handshakeCode('ERR_SSL_SSL/TLS_ALERT_NO_CERTIFICATE'), 'tls_client_cert_required');
    t.equal(handshakeCode('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'), 'tls_failed');
    t.equal(handshakeCode('EPROTO'), 'tls_failed');
    t.equal(handshakeCode('ECONNRESET'), null);
    t.equal(handshakeCode(''), null);
});
