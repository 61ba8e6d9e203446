import { isIP } from 'node:net';
import { generate } from 'selfsigned';

export interface Credentials {
    readonly key: string;
    readonly cert: string;
}

export interface CertificateOptions {
    /** Of a server, or its address. */
    readonly name?: string;
    readonly from?: string;
    readonly to?: string;
    readonly authority?: Credentials;
    /** Writes the name into the subject only, as many do by hand. */
    readonly withoutAlternativeName?: boolean;
    /** Bits of an RSA key; else it is one of P-256. */
    readonly rsa?: number;
}

/** A server certificate, for `good.test` and today unless told otherwise; self-signed without an authority. */
export async function certificate({
    name = 'good.test',
    from,
    to,
    authority,
    withoutAlternativeName,
    rsa,
}: CertificateOptions = {}): Promise<Credentials> {
    const made = await generate([{ name: 'commonName', value: name }], {
        ...keyOf(rsa),
        algorithm: 'sha256',
        notBeforeDate: new Date(from ?? Date.now() - 86_400_000),
        notAfterDate: new Date(to ?? Date.now() + 86_400_000),
        extensions: [
            { name: 'basicConstraints', cA: false },
            ...(withoutAlternativeName ? [] : [{ name: 'subjectAltName' as const, altNames: [alternativeName(name)] }]),
        ],
        ...(authority && { ca: authority }),
    });
    return { key: made.private, cert: made.cert };
}

function alternativeName(name: string): { type: 2; value: string } | { type: 7; ip: string } {
    return isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name };
}

function keyOf(rsa: number | undefined): { keyType: 'ec' } | { keyType: 'rsa'; keySize: number } {
    return rsa === undefined ? { keyType: 'ec' } : { keyType: 'rsa', keySize: rsa };
}

/** A root of its own that may sign others, whose keys must be of the same kind: with `rsa` one of that many bits. */
export async function authority(name: string, { rsa }: Pick<CertificateOptions, 'rsa'> = {}): Promise<Credentials> {
    const made = await generate([{ name: 'commonName', value: name }], {
        ...keyOf(rsa),
        algorithm: 'sha256',
        notBeforeDate: new Date(Date.now() - 86_400_000),
        extensions: [
            { name: 'basicConstraints', cA: true, critical: true },
            { name: 'keyUsage', keyCertSign: true, cRLSign: true, critical: true },
        ],
    });
    return { key: made.private, cert: made.cert };
}

/** The same certificate with one bit of its signature turned over. */
export function forged({ key, cert }: Credentials): Credentials {
    const bytes = Buffer.from(cert.replace(/-----[^-]+-----|\s/g, ''), 'base64');
    bytes.writeUInt8(bytes.readUInt8(bytes.length - 1) ^ 1, bytes.length - 1);
    const lines = bytes.toString('base64').match(/.{1,64}/g) ?? [];
    return { key, cert: ['-----BEGIN CERTIFICATE-----', ...lines, '-----END CERTIFICATE-----', ''].join('\n') };
}

/** The certificate followed by others, as a server presents them. */
export function chain({ key, cert }: Credentials, ...others: readonly Credentials[]): Credentials {
    return { key, cert: [cert, ...others.map((other) => other.cert)].join('\n') };
}
