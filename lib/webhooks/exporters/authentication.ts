import Joi from 'joi';
import { type EgressGuard, guardFor } from '../../egress/guard.ts';
import type { UrlFault } from '../../egress/outgoing-url.ts';
import { type EgressProxy, type ProxyAddress, parseProxyUrl } from '../../egress/proxy.ts';
import { ScanwireError } from '../../errors.ts';
import type { KeyRing, SealedText } from '../../keys/key-ring.ts';
import { storableText, subjectOf } from '../../schema-validation.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import type { WebhooksContext } from '../webhooks-context.ts';
import { certificatesIn, checkTls, tlsContext } from './client-certificate.ts';
import type { StoredExporter } from './exporter.ts';
import type { ExporterPatch } from './exporter-patch.ts';
import { checkReceiverUrl } from './receiver-url.ts';
import { knownUrl } from './sealed-url.ts';

/** How an exporter proves to its receiver who sends, and whom it trusts, besides signatures and headers. Sealed as one text. */
export interface Authentication {
    /** Goes out as `Authorization: Basic …`. */
    readonly basic?: BasicCredentials;
    /**
     * Certificates of authorities, PEM, in place of those that Node trusts. Certificates that they have not signed are trusted only as far as
     * `trust` allows; with `all`, any is.
     */
    readonly ca?: string;
    /** Presented in the TLS handshake. */
    readonly clientCertificate?: ClientCertificate;
    /** Goes out as `Authorization: Bearer …`, with a token that this client gets from its token server. */
    readonly oauth?: OAuthClient;
    /** The way to the receiver, and to its token server. */
    readonly proxy?: ProxySettings;
}

/** User name and password of HTTP Basic. */
export interface BasicCredentials {
    readonly username: string;
    readonly password: string;
}

/** What an exporter shows of itself in a TLS handshake. */
export interface ClientCertificate {
    /** PEM: the certificate, then those between it and its authority. */
    readonly certificate: string;
    /** PEM, not encrypted. */
    readonly key: string;
}

/** How the client proves itself to the token server, by the names of the OAuth registry: by the header `Authorization`, or by fields of the form. */
export const OAUTH_METHODS = ['client_secret_basic', 'client_secret_post'] as const;

/** A client of a token server (OAuth 2, client credentials). */
export interface OAuthClient {
    /** Of the token server, https. */
    readonly tokenUrl: string;
    readonly clientId: string;
    readonly clientSecret: string;
    readonly scope?: string;
    readonly audience?: string;
    /** `client_secret_basic` when absent. */
    readonly authMethod?: (typeof OAUTH_METHODS)[number];
    /** PEM of the authorities of the token server; those that Node trusts when absent. */
    readonly ca?: string;
}

/** A proxy that takes CONNECT. */
export interface ProxySettings {
    /** http or https, with user and password if it wants some: `http://user:password@proxy.example.com:3128`. */
    readonly url: string;
    /** Lets the proxy look up names. Nobody here vets the addresses then: whatever the proxy reaches can be called. */
    readonly resolvesNames?: boolean;
    /** PEM of the authorities of an https proxy; those that Node trusts when absent. */
    readonly ca?: string;
}

/** Name of one part of {@link Authentication}. */
export type AuthenticationPart = keyof Authentication;

/** The settings that a user gives: an absent part stays as it is, null removes it. */
export type AuthenticationSettings = { readonly [Part in AuthenticationPart]?: Authentication[Part] | null };

const MAX_PEM = 65_536;
const pemSchema = (): Joi.StringSchema => storableText().max(MAX_PEM);

/** The characters that RFC 6749 allows in the names and secrets of clients. */
const ascii = (max: number): Joi.StringSchema =>
    Joi.string()
        .max(max)
        .pattern(/^[\x20-\x7e]*$/)
        .messages({ 'string.pattern.base': '{{#label}} must be visible ASCII characters and spaces' });

/** The rules of {@link AuthenticationSettings}. Rules that depend on other settings are in {@link checkAuthentication}. */
export const authenticationSchemas: { readonly [Part in AuthenticationPart]: Joi.Schema } = {
    basic: Joi.object({
        username: Joi.string()
            .max(255)
            .allow('')
            .pattern(/^[^:\p{Cc}\p{Cs}]*$/u)
            .messages({ 'string.pattern.base': '{{#label}} must contain neither a colon nor control characters' })
            .required(),
        password: Joi.string()
            .max(1024)
            .allow('')
            .pattern(/^[^\p{Cc}\p{Cs}]*$/u)
            .messages({ 'string.pattern.base': '{{#label}} must not contain control characters' })
            .required(),
    })
        .allow(null)
        .description('User name and password, sent as Authorization: Basic'),
    ca: pemSchema().allow(null).description('PEM of authorities; only what they have signed is trusted'),
    clientCertificate: Joi.object({ certificate: pemSchema().required(), key: pemSchema().required() })
        .allow(null)
        .description('PEM of a certificate, and of its key, that the receiver is shown'),
    oauth: Joi.object({
        tokenUrl: Joi.string().max(2048).required(),
        clientId: ascii(255).required(),
        clientSecret: ascii(1024).required(),
        scope: ascii(1024),
        audience: ascii(1024),
        authMethod: Joi.string().valid(...OAUTH_METHODS),
        ca: pemSchema(),
    })
        .allow(null)
        .description('Client of a token server (OAuth 2, client credentials), whose tokens are sent as Authorization: Bearer'),
    proxy: Joi.object({ url: Joi.string().max(2048).required(), resolvesNames: Joi.boolean(), ca: pemSchema() })
        .allow(null)
        .description('Proxy that takes CONNECT, on the way to the receiver'),
};

/** Names of all that an exporter may authenticate by. */
export const AUTHENTICATION_PARTS: readonly AuthenticationPart[] = Object.keys(authenticationSchemas) as AuthenticationPart[];

/** The parts that were given for one receiver, and may go to no other. */
const CREDENTIALS: readonly AuthenticationPart[] = ['basic', 'clientCertificate', 'oauth'];

/** Splits settings into those of authentication, as far as they were given, and the others. */
export function splitAuthentication<Settings extends AuthenticationSettings>(
    settings: Settings,
): readonly [AuthenticationSettings, Omit<Settings, AuthenticationPart>] {
    const isPart = ([name]: readonly [string, unknown]): boolean => (AUTHENTICATION_PARTS as readonly string[]).includes(name);
    const entries = Object.entries(settings).filter(([, value]) => value !== undefined);
    const others = Object.fromEntries(entries.filter((entry) => !isPart(entry)));
    return [Object.fromEntries(entries.filter(isPart)), others as Omit<Settings, AuthenticationPart>];
}

type StoredAuthentication = Pick<StoredExporter, 'authentication' | 'sealedAuthentication'>;

/** The authentication to store after a change: what the exporter had, with the given parts added, replaced or removed. Null when nothing is left. */
export function storedAuthentication(
    id: string,
    before: Authentication | null,
    given: AuthenticationSettings,
    keyRing: KeyRing,
): StoredAuthentication {
    const all = Object.entries({ ...before, ...given }).filter(([, value]) => value !== null);
    const sealed = all.length === 0 ? null : keyRing.seal(JSON.stringify(Object.fromEntries(all)), contextOf(id));
    return { authentication: all.map(([name]) => name as AuthenticationPart), sealedAuthentication: sealed };
}

/**
 * What is to be stored of a change.
 *
 * @throws ScanwireError where part of what there is stays: `UNSEALABLE` if this key ring cannot unseal it, `INVALID_INPUT` if it is missing.
 */
export function authenticationPatch(before: StoredExporter, given: AuthenticationSettings, keyRing: KeyRing): ExporterPatch {
    if (Object.keys(given).length === 0) {
        return {};
    }

    const staying = before.authentication.filter((part) => given[part] === undefined);
    const kept = staying.length === 0 ? null : unsealAuthentication({ ...before, authentication: staying }, keyRing);
    return { ...storedAuthentication(before.id, kept, given, keyRing), expectedAuthentication: before.sealedAuthentication };
}

/** The first of its credentials that a change does not mention, and that would therefore be sent to the new receiver; undefined when there is none. */
export function unsettledCredential(before: StoredExporter, given: AuthenticationSettings): AuthenticationPart | undefined {
    return CREDENTIALS.find((part) => before.authentication.includes(part) && given[part] === undefined);
}

/** What is sealed of it: one text, or none. */
export function sealedAuthentication({ id, sealedAuthentication: sealed }: StoredExporter): readonly SealedText[] {
    return sealed === null ? [] : [{ sealed, context: contextOf(id) }];
}

/**
 * What an exporter authenticates by, null for nothing.
 *
 * @throws ScanwireError `UNSEALABLE`; `INVALID_INPUT` with the field for a part that is named and not sealed, as in a row that was changed past all
 *     checks: without it the exporter would send unproven, or another way.
 */
export function unsealAuthentication(exporter: StoredExporter, keyRing: KeyRing): Authentication | null {
    const [text] = sealedAuthentication(exporter);
    const all: Authentication | null = text === undefined ? null : JSON.parse(keyRing.open(text.sealed, text.context));
    const missing = exporter.authentication.find((part) => all?.[part] === undefined);
    if (missing !== undefined) {
        throw refused(missing, `${subjectOf(missing)} must be given again, or removed: the exporter has it, and nothing is stored of it`);
    }
    return all;
}

/**
 * Checks what an exporter authenticates by against its other settings.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field, never with a value; `UNSEALABLE`.
 */
export function checkAuthentication(exporter: StoredExporter, { keyRing, guard }: Pick<WebhooksContext, 'keyRing' | 'guard'>): void {
    const all = unsealAuthentication(exporter, keyRing);
    if (all === null) {
        return;
    }

    const rivals = (['oauth', 'basic'] as const).filter((part) => all[part] !== undefined);
    const [first] = rivals;
    if (first !== undefined && exporter.headerNames.some(isAuthorization)) {
        throw refused(first, `${subjectOf(first)} and the additional header Authorization exclude each other`);
    }
    if (rivals.length > 1) {
        throw refused('oauth', 'Oauth and basic exclude each other: both go out as Authorization');
    }

    const [tlsPart] = (['clientCertificate', 'ca'] as const).filter((part) => all[part] !== undefined);
    if (tlsPart !== undefined && knownUrl(exporter, keyRing)?.startsWith('http:')) {
        throw refused(tlsPart, `${subjectOf(tlsPart)} needs a URL with https: plain http shows and asks for none`);
    }
    checkTls(all);
    const ofOwner = guardFor(guard, exporter.owner);
    if (all.oauth !== undefined) {
        checkOAuth(all.oauth, ofOwner);
    }
    if (all.proxy !== undefined) {
        checkProxy(all.proxy, ofOwner);
    }
}

function checkProxy({ url: text, ca }: ProxySettings, guard: EgressGuard): void {
    const { url } = parsedProxy(text);
    checkUrl(url.href, 'proxy.url', guard);
    if (ca !== undefined) {
        certificatesIn(ca, 'proxy.ca');
    }
}

function parsedProxy(text: string): ProxyAddress {
    const parsed = parseProxyUrl(text);
    if (typeof parsed === 'string') {
        throw refused('proxy.url', `Proxy.url ${PROXY_FAULTS[parsed] ?? 'must be an absolute http or https URL'}`);
    }
    return parsed;
}

const PROXY_FAULTS: Readonly<Partial<Record<UrlFault | 'path', string>>> = {
    path: 'must end with its host or port',
    credentials: 'must have user and password percent-encoded',
};

/** The proxy as connections use it, null for none. @throws ScanwireError `INVALID_INPUT`, AttemptFailure `invalid_exporter`. */
export function egressProxy({ proxy }: Pick<Authentication, 'proxy'>): EgressProxy | null {
    if (proxy === undefined) {
        return null;
    }

    const { url, host, port, credentials } = parsedProxy(proxy.url);
    const context = url.protocol === 'https:' ? tlsContext(proxy) : null;
    return { host, port, credentials, context, resolvesNames: proxy.resolvesNames === true };
}

function checkOAuth({ tokenUrl, ca }: OAuthClient, guard: EgressGuard): void {
    if (ca !== undefined) {
        certificatesIn(ca, 'oauth.ca');
    }
    if (!checkUrl(tokenUrl, 'oauth.tokenUrl', guard).startsWith('https:')) {
        throw refused('oauth.tokenUrl', 'Oauth.tokenUrl must be https: the secret of the client goes there');
    }
}

/** Checks a URL by the rules for receivers, since it is called through the same guard. */
function checkUrl(text: string, field: string, guard: EgressGuard): string {
    try {
        return checkReceiverUrl(text, guard);
    } catch (error) {
        throw error instanceof ScanwireError ? refused(field, error.message.replace(/^URL/, subjectOf(field))) : error;
    }
}

/**
 * The header by which a message authenticates itself; none where there is nothing for one.
 *
 * @param token What {@link Authentication.oauth} has got from its server.
 */
export function authorizationOf(authentication: Authentication | null, token: string = ''): HeaderPairs {
    const { basic, oauth } = authentication ?? {};
    if (basic === undefined) {
        return oauth === undefined ? [] : [['Authorization', `Bearer ${token}`]];
    }

    return [['Authorization', `Basic ${Buffer.from(`${basic.username}:${basic.password}`).toString('base64')}`]];
}

/** Whether a message with these headers would have two of {@link authorizationOf}: a format may have it, and a row may be changed past all checks. */
export function repeatsAuthorization(authentication: Pick<Authentication, 'basic' | 'oauth'> | null, headers: HeaderPairs): boolean {
    const { basic, oauth } = authentication ?? {};
    return (basic ?? oauth) !== undefined && headers.some(([name]) => isAuthorization(String(name)));
}

/** Whether a header is the one that credentials are sent in. */
export function isAuthorization(name: string): boolean {
    return name.toLowerCase() === 'authorization';
}

function contextOf(exporterId: string): string {
    return `exporter:${exporterId}:authentication`;
}

function refused(field: string, message: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', message, { field });
}
