import { constants, type X509Certificate } from 'node:crypto';
import tls from 'node:tls';
import { type HandshakeOptions, handshake } from '../../egress/handshake.ts';
import type { HttpsRecord } from '../record.ts';

const SUITES_OF_TLS_1_3 = ['TLS_AES_256_GCM_SHA384', 'TLS_CHACHA20_POLY1305_SHA256', 'TLS_AES_128_GCM_SHA256', 'TLS_AES_128_CCM_SHA256'];

/**
 * A record says what is there, so everything is accepted that OpenSSL still speaks: TLS 1.0 and later, every cipher that encrypts, the
 * anonymous ones included, keys and signatures of any strength, servers without secure renegotiation. No root is loaded: the
 * certificate is not verified.
 */
const CAPTURE_TLS: Readonly<tls.SecureContextOptions> = {
    minVersion: 'TLSv1',
    ciphers: ['ALL', '@SECLEVEL=0', ...SUITES_OF_TLS_1_3].join(':'),
    secureOptions: constants.SSL_OP_LEGACY_SERVER_CONNECT,
    ca: [],
};

let secureContext: tls.SecureContext | undefined;

/**
 * Secures a connection with whoever is there. The request is written at the end of the handshake, so that it goes out with it.
 *
 * @throws ConnectionFailure, or the signal's reason.
 */
export async function secureUnverified(
    connection: Omit<HandshakeOptions, 'context' | 'onSecured'>,
    request: string,
): Promise<tls.TLSSocket> {
    secureContext ??= tls.createSecureContext(CAPTURE_TLS);
    return await handshake({ ...connection, context: { secureContext }, onSecured: (socket) => void socket.write(request) });
}

/** In characters. X.520 allows 64; certificates hold what they like. */
const MAX_LENGTH = 1024;
/** A subject as OpenSSL prints it, a line for each part: nothing in it is escaped, and no line holds two parts. */
const UNESCAPED = /^[^\\+\u0080-\uffff]*$/;

/**
 * `CN` and `OU` of the certificate that the other side presented, each as far as it is there; undefined without a certificate.
 * Of several values it is the last one: the most specific in the order of the certificate. Longer ones are cut at 1,024 characters.
 * To be called once for a connection: Node may hand out its certificate only once.
 */
export function certificateSubject(socket: Pick<tls.TLSSocket, 'getPeerX509Certificate'>): HttpsRecord['subject'] {
    const subject = subjectOf(socket);
    if (subject === undefined) {
        return undefined;
    }

    const [OU, CN] = [lastOf(subject.OU), lastOf(subject.CN)];
    return { ...(OU !== undefined && { OU }), ...(CN !== undefined && { CN }) };
}

/** Node reads certificates that OpenSSL accepts; one that it cannot read is as good as none. */
function subjectOf(socket: Pick<tls.TLSSocket, 'getPeerX509Certificate'>): Readonly<Record<string, unknown>> | undefined {
    try {
        const certificate = socket.getPeerX509Certificate();
        return certificate && partsOf(certificate);
    } catch {
        return undefined;
    }
}

/** The legacy object reads any subject, but costs a hundred microseconds: it holds keys, fingerprints and extensions as well. */
function partsOf(certificate: X509Certificate): Readonly<Record<string, unknown>> {
    const text: string | undefined = certificate.subject;
    if (text === undefined || !UNESCAPED.test(text)) {
        return { ...certificate.toLegacyObject().subject };
    }

    const part = (name: string): string | undefined =>
        text
            .split('\n')
            .findLast((line) => line.startsWith(name))
            ?.slice(name.length);
    return { OU: part('OU='), CN: part('CN=') };
}

function lastOf(value: unknown): string | undefined {
    const last: unknown = Array.isArray(value) ? value.at(-1) : value;
    // well-formed also where the cut splits a pair of surrogates
    return typeof last === 'string' ? Buffer.from(last.slice(0, MAX_LENGTH)).toString() : undefined;
}
