/** Why a connection was not secured. */
export type HandshakeCode = 'protocol_error' | 'tls_client_cert_required' | 'tls_failed';

const CODES: ReadonlyMap<string, HandshakeCode> = new Map(
    Object.entries({
        protocol_error: [
            'ERR_SSL_WRONG_VERSION_NUMBER',
            'ERR_SSL_PACKET_LENGTH_TOO_LONG',
            'ERR_SSL_HTTP_REQUEST',
            'ERR_SSL_HTTPS_PROXY_REQUEST',
            'ERR_SSL_RECORD_TOO_SMALL',
            'ERR_SSL_UNEXPECTED_MESSAGE',
            'ERR_SSL_UNKNOWN_PROTOCOL',
        ],
        tls_client_cert_required: [
            'ERR_SSL_TLSV13_ALERT_CERTIFICATE_REQUIRED',
            'ERR_SSL_SSLV3_ALERT_NO_CERTIFICATE',
            'ERR_SSL_SSL/TLS_ALERT_NO_CERTIFICATE',
        ],
    } satisfies Partial<Record<HandshakeCode, readonly string[]>>).flatMap(([meaning, codes]) =>
        codes.map((code) => [code, meaning as HandshakeCode]),
    ),
);

/** What an error code of OpenSSL means for a handshake, whenever it comes up; null for a code that is not OpenSSL's. */
export function handshakeCode(code: string): HandshakeCode | null {
    const known = CODES.get(code) ?? null;
    const isTls = code.startsWith('ERR_SSL_') || code.startsWith('ERR_TLS_') || code === 'EPROTO';
    return known ?? (isTls ? 'tls_failed' : null);
}
