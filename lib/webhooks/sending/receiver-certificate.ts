import type { X509Certificate } from 'node:crypto';
import tls from 'node:tls';
import { type HandshakeOptions, handshake, weakKey } from '../../egress/handshake.ts';
import { errorCode } from '../../errors.ts';
import { printable } from '../../printable.ts';
import { codeOfError } from '../outcomes/attempt-result.ts';
import { AttemptFailure, type AttemptProgress, type OutcomeCode, type PresentedCertificate } from '../outcomes/outcome.ts';
import type { Trust } from '../setting-values.ts';

/** A connection to secure, and how far its certificate is trusted. */
export interface TrustedHandshake extends Pick<HandshakeOptions, 'socket' | 'host' | 'context' | 'timeout' | 'signal'> {
    readonly trust: Trust;
    readonly now: Date;
    /** Receives the time of the phase `tls`, and the certificate. */
    readonly progress: AttemptProgress;
}

/**
 * Secures a connection and judges the certificate before a byte of the request is written.
 *
 * - `strict`: the dates, the name, and a chain to a trusted root, one of the context's own, else one of Node's, must be right.
 *   `NODE_TLS_REJECT_UNAUTHORIZED` has no say.
 * - `self-signed`: also a certificate signed by its own key, and a chain that ends in a self-signed root among the certificates
 *   presented. Signatures, dates and name must be right all the same.
 * - `all`: any certificate.
 *
 * An RSA key of less than 2,048 bits is trusted by `all` only.
 *
 * TLS 1.2 is the floor in every mode, and no session is ever resumed, so nothing is carried from one exporter or mode to another.
 *
 * @throws AttemptFailure for a certificate, ConnectionFailure for anything else, or the signal's reason.
 */
export async function secure(options: TrustedHandshake): Promise<tls.TLSSocket> {
    const { socket, host, context, timeout, signal, progress } = options;
    const startedAt = performance.now();
    const onSecured = (secured: tls.TLSSocket): void => {
        const certificate = secured.getPeerX509Certificate();
        progress.fingerprint = certificate?.fingerprint256 ?? null;
        progress.certificate = certificate === undefined ? null : presented(certificate);
        const refusal = judge(secured, certificate, options);
        if (refusal !== null) {
            throw refusal;
        }
    };
    try {
        return await handshake({ socket, host, context, timeout, signal, onSecured });
    } finally {
        progress.tls = performance.now() - startedAt;
    }
}

const MAX_ISSUER = 200;

/** Null for a certificate with an impossible date. */
function presented({ issuer, validTo }: X509Certificate): PresentedCertificate | null {
    const end = new Date(validTo);
    const expiresAt = Number.isNaN(end.getTime()) ? null : end.toISOString();
    const cut = issuer.replaceAll(/[\p{Cc}\p{Cs}]+/gu, ', ').slice(0, MAX_ISSUER);
    // Well-formed also where the cut has split a pair of surrogates.
    return expiresAt === null ? null : { issuer: printable(Buffer.from(cut).toString()), expiresAt };
}

/** Why the certificate is not trusted; null when it is. */
function judge(socket: tls.TLSSocket, certificate: X509Certificate | undefined, options: TrustedHandshake): AttemptFailure | null {
    if (options.trust === 'all') {
        return null;
    }

    /* c8 ignore next 3 -- Node offers no cipher by which a server needs no certificate, unless it is started with such ones */
    if (certificate === undefined) {
        return refused('tls_failed', options.host, 'presented no certificate');
    }

    return (socket.authorized ? null : unverified(socket, certificate, options)) ?? tooWeak(certificate, options.host);
}

function tooWeak(certificate: X509Certificate, host: string): AttemptFailure | null {
    const weakness = weakKey(certificate);
    return weakness === null
        ? null
        : refused('tls_failed', host, `presented a certificate with ${weakness} unless all certificates are trusted`);
}

/** Why a certificate that Node could not verify is not trusted; null when it is trusted all the same. */
function unverified(
    { authorizationError }: tls.TLSSocket,
    certificate: X509Certificate,
    { host, trust, now }: TrustedHandshake,
): AttemptFailure | null {
    const code = verifyCode(authorizationError);
    if (trust === 'strict' || !SELF_SIGNED.has(code)) {
        return refusedFor(code, host);
    }

    // Node stops at the first verify error, so all that comes after it is checked here
    const chain = chainOf(certificate);
    return chain === null
        ? refused('tls_failed', host, 'presented a certificate that is not signed as it says')
        : (wrongDates(chain, host, now) ?? wrongName(certificate, host));
}

const SELF_SIGNED: ReadonlySet<string> = new Set(['DEPTH_ZERO_SELF_SIGNED_CERT', 'SELF_SIGNED_CERT_IN_CHAIN']);
const MAX_CHAIN = 12;

/** The certificate and those above it, each signed by the next, up to one signed by its own key; null when there is no such chain. */
function chainOf(leaf: X509Certificate): readonly X509Certificate[] | null {
    const presented: X509Certificate[] = [];
    for (let next: X509Certificate | undefined = leaf; next !== undefined && presented.length < MAX_CHAIN; next = next.issuerCertificate) {
        presented.push(next);
    }

    const chain = [leaf];
    for (let last = leaf; !signedBy(last, last); ) {
        const issuer = presented.find((candidate) => candidate.ca && !chain.includes(candidate) && signedBy(last, candidate));
        if (issuer === undefined) {
            return null;
        }

        chain.push(issuer);
        last = issuer;
    }

    return chain;
}

function signedBy(certificate: X509Certificate, issuer: X509Certificate): boolean {
    try {
        return certificate.checkIssued(issuer) && certificate.verify(issuer.publicKey);
        /* c8 ignore next 3 -- a key of a kind that cannot verify: the OpenSSL of today already says that its owner has not issued */
    } catch {
        return false;
    }
}

function wrongDates(chain: readonly X509Certificate[], host: string, now: Date): AttemptFailure | null {
    if (!chain.every(({ validTo }) => now.getTime() <= Date.parse(validTo))) {
        return refusedFor('CERT_HAS_EXPIRED', host);
    }

    return chain.every(({ validFrom }) => now.getTime() >= Date.parse(validFrom)) ? null : refusedFor('CERT_NOT_YET_VALID', host);
}

/** Whether the name is wrong, by the rule that Node applies to certificates that it can verify. */
function wrongName(certificate: X509Certificate, host: string): AttemptFailure | null {
    const error = tls.checkServerIdentity(host, certificate.toLegacyObject());
    return error === undefined ? null : refusedFor('ERR_TLS_CERT_ALTNAME_INVALID', host);
}

/** Node's types say Error; at run time it is the code of the error. */
function verifyCode(error: unknown): string {
    return typeof error === 'string' ? error : errorCode(error);
}

const REASONS: Readonly<Partial<Record<OutcomeCode, string>>> = {
    tls_self_signed: 'presented a self-signed certificate',
    tls_unknown_ca: 'presented a certificate of an unknown authority',
    tls_expired: 'presented a certificate that has expired',
    tls_not_yet_valid: 'presented a certificate that is not valid yet',
    tls_name_mismatch: 'presented a certificate for another name',
};

function refusedFor(verifyError: string, host: string): AttemptFailure {
    const code = codeOfError(Object.assign(new Error(), { code: verifyError }), 'tls_failed');
    return refused(code, host, REASONS[code] ?? `presented a certificate that cannot be verified (${verifyError || 'no reason given'})`);
}

function refused(code: OutcomeCode, host: string, reason: string): AttemptFailure {
    return new AttemptFailure(code, `${host} ${reason}`);
}
