import { createPrivateKey, X509Certificate } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { isIP } from 'node:net';
import type { Server as Listener } from 'node:tls';
import { type Clock, type Ticker, timer } from '../lib/clock.ts';
import { ScanwireError } from '../lib/errors.ts';
import { optionalPackage } from '../lib/optional-packages.ts';
import { handshakeOptions } from '../lib/protect/handshakes.ts';
import { type DataFolder, readIfPresent, replaceFile } from './data-folder.ts';
import { hiddenText } from './secret-input.ts';

/** A certificate and its key. */
export interface TlsPair {
    readonly key: string;
    readonly cert: string;
    /** Path of the self-signed certificate that clients may trust; null for one that the user brought. */
    readonly selfSigned: string | null;
}

/** Where certificate and key come from. */
export interface TlsOptions {
    readonly folder: DataFolder;
    /** Address or name that the server listens on; the certificate covers it. */
    readonly host: string;
    readonly clock: Clock;
    /** The user's own, both or none: a file for each, for the key also `-` for stdin, or in its place the name of an environment variable. */
    readonly certificateFile?: string | undefined;
    readonly keyFile?: string | undefined;
    readonly keyVariable?: string | undefined;
    /** The key from stdin or a variable, which tell it once. */
    readonly toldKey?: string;
}

/** Listeners whose certificate is renewed. */
export interface Renewal {
    readonly options: TlsOptions;
    /** What they have now. */
    readonly pair: TlsPair;
    readonly listeners: readonly Pick<Listener, 'setSecureContext'>[];
    readonly ticker?: Ticker;
    onError(error: unknown): void;
}

const DAY = 86_400_000;
/** The most that clients of today accept. */
const VALID_DAYS = 397;
const RENEW_DAYS = 14;
/** Between two looks at the files, in milliseconds. */
const LOOK_EVERY = 60_000;
const ALWAYS = ['localhost', '127.0.0.1', '::1'];
const EVERYWHERE = new Set(['0.0.0.0', '::']);

/**
 * Key and certificate to serve with: the user's, or a self-signed pair that the data folder keeps. That one is made again only
 * when it is about to expire or does not cover the host.
 *
 * @throws ScanwireError `MISCONFIGURED` for files that cannot be read or do not belong together, and for a pair to be made without the
 *     optional package that makes it; `INVALID_INPUT` for a variable, or stdin, without a key.
 */
export async function tlsCertificate(options: TlsOptions): Promise<TlsPair> {
    const { folder, host, clock, certificateFile, keyFile, keyVariable } = options;
    if (certificateFile !== undefined || keyFile !== undefined || keyVariable !== undefined) {
        const own = { cert: await readPem('tls-cert', certificateFile), key: await readKey(options) };
        assertPair(own);
        return { ...own, selfSigned: null };
    }

    const names = EVERYWHERE.has(host) || ALWAYS.includes(host) ? ALWAYS : [...ALWAYS, host];
    const [key, cert] = await Promise.all([readIfPresent(folder.tlsKey), readIfPresent(folder.tlsCertificate)]);
    if (key !== null && cert !== null && isUsable({ key, cert }, names, clock())) {
        return { key, cert, selfSigned: folder.tlsCertificate };
    }

    const made = await selfSigned(names, clock());
    await replaceFile(folder.tlsKey, made.key);
    await replaceFile(folder.tlsCertificate, made.cert);
    return { ...made, selfSigned: folder.tlsCertificate };
}

/**
 * Looks once a minute whether there is another pair, which new connections get from then on. One that cannot be used is told of once, and the former
 * stays.
 *
 * @returns Ends it, after the look that is under way.
 */
export function renewCertificate({ options, pair, listeners, ticker = timer, onError }: Renewal): () => Promise<void> {
    let { key, cert } = pair;
    let told: string | null = null;
    let work: Promise<void> = Promise.resolve();

    async function renew(): Promise<void> {
        const next = await tlsCertificate({ ...options, toldKey: pair.key });
        if (next.key !== key || next.cert !== cert) {
            for (const listener of listeners) {
                listener.setSecureContext({ key: next.key, cert: next.cert, ...handshakeOptions() });
            }
            ({ key, cert } = next);
        }
        told = null;
    }

    function tell(cause: unknown): void {
        const message = `The certificate is not renewed from ${filesOf(options)}, and the former stays: ${(cause as Error).message}`;
        if (message !== told) {
            told = message;
            onError(new Error(message, { cause }));
        }
    }

    const stop = ticker(() => {
        work = work.then(renew).catch(tell);
    }, LOOK_EVERY);
    return async () => {
        stop();
        await work;
    };
}

function filesOf({ folder, certificateFile = folder.tlsCertificate, keyFile = folder.tlsKey, keyVariable }: TlsOptions): string {
    return keyVariable !== undefined || keyFile === '-' ? certificateFile : `${certificateFile} and ${keyFile}`;
}

async function readPem(option: string, path: string | undefined): Promise<string> {
    if (path === undefined) {
        throw new ScanwireError('MISCONFIGURED', `--${option} is missing: --tls-cert and --tls-key go together`, { field: option });
    }

    try {
        return await readFile(path, 'utf8');
    } catch (cause) {
        const { code } = cause as NodeJS.ErrnoException;
        throw new ScanwireError('MISCONFIGURED', `Cannot read the file of --${option}: ${code}`, { field: option, cause });
    }
}

/** A key that is in no file of its own comes like any other secret. */
async function readKey({ keyFile, keyVariable, toldKey }: TlsOptions): Promise<string> {
    return keyVariable === undefined && keyFile !== '-'
        ? await readPem('tls-key', keyFile)
        : (toldKey ?? (await hiddenText('tlsKey', { tlsKey: keyFile, tlsKeyEnv: keyVariable })) ?? '');
}

function assertPair({ cert, key }: { readonly cert: string; readonly key: string }): void {
    const certificate = parsed('tls-cert', 'a certificate', () => new X509Certificate(cert));
    const privateKey = parsed('tls-key', 'a private key without a password', () => createPrivateKey(key));
    if (!certificate.checkPrivateKey(privateKey)) {
        throw new ScanwireError('MISCONFIGURED', 'The key of --tls-key does not belong to the certificate of --tls-cert', {
            field: 'tls-key',
        });
    }
}

/** Without the cause's own message, which only says where its parser gave up. */
function parsed<T>(option: string, what: string, parse: () => T): T {
    try {
        return parse();
    } catch (cause) {
        throw new ScanwireError('MISCONFIGURED', `What is given for --${option} is not ${what} in PEM form`, { field: option, cause });
    }
}

/** A start that was cut off between the two files leaves a key that is not the certificate's. */
function isUsable({ key, cert }: { readonly key: string; readonly cert: string }, names: readonly string[], now: Date): boolean {
    try {
        const certificate = new X509Certificate(cert);
        const covers = (name: string): boolean =>
            (isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)) !== undefined;
        return (
            certificate.checkPrivateKey(createPrivateKey(key)) &&
            new Date(certificate.validTo).getTime() - RENEW_DAYS * DAY > now.getTime() &&
            names.every(covers)
        );
    } catch {
        return false;
    }
}

async function selfSigned(names: readonly string[], now: Date): Promise<{ key: string; cert: string }> {
    const use = 'HTTPS without --tls-cert and --tls-key';
    const { generate } = await optionalPackage('selfsigned', use, () => import('selfsigned'));
    const made = await generate([{ name: 'commonName', value: 'localhost' }], {
        keyType: 'ec',
        curve: 'P-256',
        algorithm: 'sha256',
        // A little earlier, for clients whose clock is slow.
        notBeforeDate: new Date(now.getTime() - DAY),
        notAfterDate: new Date(now.getTime() + (VALID_DAYS - 1) * DAY),
        extensions: [
            { name: 'basicConstraints', cA: false, critical: true },
            { name: 'keyUsage', digitalSignature: true, critical: true },
            { name: 'extKeyUsage', serverAuth: true },
            {
                name: 'subjectAltName',
                altNames: names.map((name) => (isIP(name) === 0 ? { type: 2 as const, value: name } : { type: 7 as const, ip: name })),
            },
        ],
    });
    return { key: made.private, cert: made.cert };
}
