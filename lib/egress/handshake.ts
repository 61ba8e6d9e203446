import type { X509Certificate } from 'node:crypto';
import type net from 'node:net';
import { isIP } from 'node:net';
import tls from 'node:tls';
import { CodedError, codeNote } from '../errors.ts';
import { within } from '../within.ts';
import { ConnectionFailure, connectionCode, isClientCertificateRefused, lateBy } from './connection-code.ts';

/** A connection to secure. */
export interface HandshakeOptions {
    /** Connected; destroyed when the handshake fails. */
    readonly socket: net.Socket;
    /** Whom to talk to: a name goes out as SNI. */
    readonly host: string;
    /** Versions, ciphers and roots. */
    readonly context: tls.SecureContextOptions & Pick<tls.ConnectionOptions, 'secureContext'>;
    /** Milliseconds. */
    readonly timeout: number;
    readonly signal: AbortSignal;
    /** Called at the end of the handshake; what it writes goes out with that, and what it throws breaks the connection off. */
    readonly onSecured: (socket: tls.TLSSocket) => void;
}

/**
 * Secures a connection for HTTP/1.1. No session is resumed. The certificate is verified as far as `authorized` and
 * `authorizationError` of the socket tell, but what follows from it is for `onSecured` to decide.
 *
 * @throws ConnectionFailure, what `onSecured` throws (a CodedError), or the signal's reason.
 */
export async function handshake({ socket, host, context, timeout, signal, onSecured }: HandshakeOptions): Promise<tls.TLSSocket> {
    const secured = tls.connect({
        ...context,
        socket,
        host,
        ...(isIP(host) === 0 && { servername: host }),
        ALPNProtocols: ['http/1.1'],
        // Node verifies all the same; with `true` it would hang up before the certificate could be looked at
        rejectUnauthorized: false,
    });
    const late = (by: number): Error => lateBy(by, new ConnectionFailure('tls_failed', `The TLS handshake with ${host} timed out`));
    try {
        await within(settled(secured, host, onSecured), { timeout, late, signal });
        return secured;
    } catch (error) {
        secured.destroy();
        socket.destroy();
        throw error instanceof CodedError || signal.aborted ? error : failedHandshake(host, error);
    }
}

function settled(secured: tls.TLSSocket, host: string, onSecured: HandshakeOptions['onSecured']): Promise<void> {
    return new Promise((resolve, reject) => {
        const onClose = (): void => reject(new ConnectionFailure('tls_failed', `${host} closed the connection during the TLS handshake`));
        secured.on('error', reject);
        secured.once('close', onClose);
        secured.once('secureConnect', () => {
            secured.off('close', onClose);
            try {
                resolve(onSecured(secured));
            } catch (error) {
                reject(error);
            }
        });
    });
}

const MIN_RSA_BITS = 2048;

/** What makes the key of a certificate too weak to be trusted; null when it is not. OpenSSL's own rule is lower in some builds than in others. */
export function weakKey({ publicKey }: X509Certificate): string | null {
    const bits = publicKey.asymmetricKeyDetails?.modulusLength ?? MIN_RSA_BITS;
    return bits < MIN_RSA_BITS ? `an RSA key of ${bits} bits, of which at least ${MIN_RSA_BITS} are needed` : null;
}

function failedHandshake(host: string, error: unknown): ConnectionFailure {
    const code = connectionCode(error, 'tls_failed');
    const refusal = isClientCertificateRefused(error) ? 'refused the client certificate' : 'broke off the TLS handshake';
    const what = code === 'protocol_error' ? 'does not speak TLS on this port' : refusal;
    return new ConnectionFailure(code, `${host} ${what}${codeNote(error)}`, error);
}
