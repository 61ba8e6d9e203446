/**
 * The error's own code if it looks like one, else an empty text: codes may be shown, messages may not. Node makes codes of OpenSSL's
 * texts, and some of those have a slash: `ERR_SSL_SSL/TLS_ALERT_HANDSHAKE_FAILURE`.
 */
export function errorCode(error: unknown): string {
    const code = error instanceof Error && 'code' in error ? error.code : undefined;
    return typeof code === 'string' && /^[A-Z][A-Z0-9_/]{1,60}$/.test(code) ? code : '';
}
