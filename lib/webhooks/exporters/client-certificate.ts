import { createHash, createPrivateKey, type KeyObject, X509Certificate } from 'node:crypto';
import tls from 'node:tls';
import { codeNote, errorCode, ScanwireError } from '../../errors.ts';
import { subjectOf } from '../../schema-validation.ts';
import { AttemptFailure } from '../outcomes/outcome.ts';
import type { Authentication, ClientCertificate } from './authentication.ts';

/** The parts of an exporter's authentication that belong to its TLS connections. */
export type TlsIdentity = Pick<Authentication, 'ca' | 'clientCertificate'>;

const MAX_CERTIFICATES = 200;
const BEGINNINGS = /-----BEGIN /g;
const [BEGIN, END] = ['-----BEGIN CERTIFICATE-----', '-----END CERTIFICATE-----'];

/** The certificates in a PEM text, each a PEM text of its own. */
function pemBlocks(pem: string): readonly string[] {
    return pem.split(BEGIN).flatMap((part, index) => {
        const end = part.indexOf('-');
        return index > 0 && part.startsWith(END, end) ? [`${BEGIN}${part.slice(0, end)}${END}`] : [];
    });
}

/** The options of a TLS context without authorities or a certificate of the exporter's. */
const PLAIN: tls.SecureContextOptions = { minVersion: 'TLSv1.2' };

/**
 * The TLS context of a connection, with the authorities and the certificate of an exporter, if it has any. Only connections with the very same
 * ones share it, so that none uses those of another exporter.
 *
 * @throws AttemptFailure `invalid_exporter` when one of them cannot be used: nothing goes out without it.
 */
export function tlsContext(identity: TlsIdentity | null): tls.SecureContextOptions & Pick<tls.ConnectionOptions, 'secureContext'> {
    if (identity?.ca === undefined && identity?.clientCertificate === undefined) {
        return PLAIN;
    }

    try {
        return { secureContext: remembered(identity) };
    } catch (error) {
        throw error instanceof ScanwireError ? new AttemptFailure('invalid_exporter', error.message) : error;
    }
}

/** Characters in PEM of which contexts are remembered. A context takes about five times as many bytes. */
const MAX_REMEMBERED = 4_194_304;

/** Remembers contexts, since to make one of 64 KiB of authorities takes 40 ms. Dates are judged in each handshake, not here. */
function rememberedContexts(): (identity: TlsIdentity) => tls.SecureContext {
    /** By digest, so that no key stays in memory as text; those that were used last come last. */
    const known = new Map<string, { readonly context: tls.SecureContext; readonly length: number }>();
    let remembered = 0;

    function forget(key: string): void {
        remembered -= known.get(key)?.length ?? 0;
        known.delete(key);
    }

    return (identity) => {
        const { ca, clientCertificate } = identity;
        const text = JSON.stringify([ca, clientCertificate?.certificate, clientCertificate?.key]);
        const key = createHash('sha256').update(text).digest('base64');
        const entry = known.get(key) ?? { context: checkTls(identity), length: text.length };
        forget(key);
        known.set(key, entry);
        remembered += entry.length;
        for (const [oldest] of known) {
            if (remembered <= MAX_REMEMBERED) {
                break;
            }
            forget(oldest);
        }
        return entry.context;
    };
}

const remembered = rememberedContexts();

function contextOptions({ ca, clientCertificate }: TlsIdentity): tls.SecureContextOptions {
    return {
        ...PLAIN,
        ...(ca !== undefined && { ca: [...pemBlocks(ca)] }),
        ...(clientCertificate !== undefined && { cert: clientCertificate.certificate, key: clientCertificate.key }),
    };
}

/**
 * The TLS context with these authorities and this certificate.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field, for certificates that cannot be used and a key that does not fit.
 */
export function checkTls(identity: TlsIdentity): tls.SecureContext {
    const { ca, clientCertificate } = identity;
    if (ca !== undefined) {
        certificatesIn(ca, 'ca');
    }
    if (clientCertificate !== undefined) {
        checkClientCertificate(clientCertificate);
    }

    try {
        return tls.createSecureContext(contextOptions(identity));
    } catch (error) {
        const [field, subject] = clientCertificate === undefined ? ['ca', 'Ca'] : ['clientCertificate', 'ClientCertificate'];
        throw refused(field, `${subject} cannot be used${codeNote(error)}`);
    }
}

function checkClientCertificate({ certificate, key }: ClientCertificate): void {
    const [leaf] = certificatesIn(certificate, 'clientCertificate.certificate');
    if (leaf?.checkPrivateKey(privateKey(key)) !== true) {
        throw refused('clientCertificate.key', 'ClientCertificate.key is not that of the first certificate');
    }
}

function privateKey(pem: string): KeyObject {
    try {
        return createPrivateKey(pem);
    } catch (error) {
        const encrypted = errorCode(error) === 'ERR_MISSING_PASSPHRASE' || /-----BEGIN ENCRYPTED |^Proc-Type: .*ENCRYPTED/m.test(pem);
        const reason = encrypted ? 'must not be encrypted: it is sealed here' : 'is not a private key in PEM';
        throw refused('clientCertificate.key', `ClientCertificate.key ${reason}`);
    }
}

/** All certificates of a text, which may have comments between them. A broken certificate is refused, not skipped. */
export function certificatesIn(pem: string, field: string): readonly X509Certificate[] {
    const subject = subjectOf(field);
    const texts = pemBlocks(pem);
    if (texts.length === 0 || texts.length !== [...pem.matchAll(BEGINNINGS)].length) {
        throw refused(field, `${subject} must be certificates in PEM, and nothing else that is in PEM`);
    }
    if (texts.length > MAX_CERTIFICATES) {
        throw refused(field, `${subject} must be at most ${MAX_CERTIFICATES} certificates`);
    }

    return texts.map((text, index) => {
        try {
            return new X509Certificate(text);
        } catch {
            throw refused(field, `${subject} has a certificate that cannot be read, number ${index + 1}`);
        }
    });
}

function refused(field: string, message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}
