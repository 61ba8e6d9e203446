import t from 'tap';
import { connectionCode, isClientCertificateRefused } from '../../../lib/egress/connection-code.ts';

const withCode = (code: string): Error => Object.assign(new Error('secret text'), { code });

t.test('names what an error means, by its code and else by where it came up', async (t) => {
    t.equal(connectionCode(withCode('EMFILE'), 'connect_failed'), 'interrupted');
    t.equal(connectionCode(withCode('ECONNREFUSED'), 'connect_failed'), 'connect_refused');
    t.equal(connectionCode(withCode('ENOTFOUND'), 'dns_failed'), 'dns_not_found');
    t.equal(connectionCode(withCode('ESTRANGE'), 'dns_failed'), 'dns_failed');
    t.equal(connectionCode(withCode('ESTRANGE'), 'connect_failed'), 'connect_failed');
    t.equal(connectionCode(undefined, 'connect_failed'), 'connect_failed');
});

t.test('takes what this machine lacks or forbids for a fault of its own', async (t) => {
    for (const code of ['EMFILE', 'ENFILE', 'ENOBUFS', 'ENOMEM', 'EADDRNOTAVAIL', 'EADDRINUSE', 'EPERM', 'EACCES', 'EAI_MEMORY']) {
        t.equal(connectionCode(withCode(code), 'connect_failed'), 'interrupted', code);
        t.equal(connectionCode(withCode(code), 'dns_failed'), 'interrupted', code);
    }
});

t.test('names what a code of OpenSSL means, in the spelling of every Node', async (t) => {
    const meaning = (code: string): string => connectionCode(withCode(code), 'otherwise');
    t.equal(meaning('ERR_SSL_WRONG_VERSION_NUMBER'), 'protocol_error');
    t.equal(meaning('ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED'), 'tls_client_cert_required');
    t.equal(meaning('ERR_SSL_SSLV3_ALERT_NO_CERTIFICATE'), 'tls_client_cert_required');
    t.equal(meaning('ERR_SSL_SSL/TLS_ALERT_NO_CERTIFICATE'), 'tls_client_cert_required');
    for (const code of [
        'ERR_SSL_TLSV1_ALERT_UNKNOWN_CA',
        'ERR_SSL_SSLV3_ALERT_BAD_CERTIFICATE',
        'ERR_SSL_SSL/TLS_ALERT_CERTIFICATE_EXPIRED',
    ]) {
        t.equal(meaning(code), 'tls_client_cert_required', code);
        t.ok(isClientCertificateRefused(withCode(code)), code);
    }
    for (const code of ['ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED', 'CERT_HAS_EXPIRED', 'UNABLE_TO_GET_ISSUER_CERT']) {
        t.notOk(isClientCertificateRefused(withCode(code)), 'a demand, and what we refuse');
    }
    t.equal(meaning('ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE'), 'tls_failed');
    t.equal(meaning('EPROTO'), 'tls_failed');
    t.equal(meaning('ECONNRESET'), 'connection_reset');
    t.equal(meaning(''), 'otherwise');
});
