import { parseProxyUrl } from '../../egress/proxy.ts';
import type { KeyRing } from '../../keys/key-ring.ts';
import type { Claim } from '../deliveries/delivery-store.ts';
import { isAuthorization, unsealAuthentication } from '../exporters/authentication.ts';
import { unsealUrl } from '../exporters/sealed-url.ts';
import { sealedFormatSecret } from '../formats/format-secret.ts';
import type { HeaderPairs } from '../messages/message-headers.ts';
import { unsealHeaders } from '../messages/message-headers.ts';
import type { Vendor } from '../messages/signature.ts';
import { unsealSecrets } from '../messages/signing-secret.ts';

/** Headers whose values are no secret; the values of all other headers of a message are. */
const SHOWN_HEADERS: ReadonlySet<string> = new Set(['content-type', 'user-agent', 'webhook-id', 'webhook-timestamp', 'traceparent']);

/** A part of a secret with fewer characters than this reveals nothing by itself. */
const MIN_PART = 4;

/**
 * Everything in a message that must not be shown, as whole texts and in the parts that a receiver may repeat one by one.
 *
 * @param sent The headers that it was sent with, those of its authentication too.
 * @throws ScanwireError `UNSEALABLE`.
 */
export function messageSecrets(
    { exporter, message, claimedAt }: Pick<Claim, 'exporter' | 'message' | 'claimedAt'>,
    sent: HeaderPairs,
    { keyRing, vendor }: { readonly keyRing: KeyRing; readonly vendor: Vendor },
): readonly string[] {
    const additional = new Set(unsealHeaders(exporter, keyRing).map(([name]) => name.toLowerCase()));
    const shown = new Set([...SHOWN_HEADERS, `${vendor.headerPrefix}-event`, ...(message?.headers ?? []).map(([name]) => name)].map(lower));
    const headers = sent.filter(([name]) => additional.has(lower(name)) || !shown.has(lower(name)));
    const formatSecrets = sealedFormatSecret(exporter).map(({ sealed, context }) => keyRing.open(sealed, context));
    const { basic, oauth, proxy } = unsealAuthentication(exporter, keyRing) ?? {};
    const credentials = [basic?.username, basic?.password, oauth?.clientId, oauth?.clientSecret].filter((text) => text !== undefined);
    const all = [
        ...headers.flatMap(([name, value]) => partsOfHeader(name, value)),
        ...unsealSecrets(exporter, keyRing, claimedAt).flatMap((secret) => [secret, secret.replace(/^whsec_/, '')]),
        ...formatSecrets,
        ...credentials,
        ...partsOfUrl(unsealUrl(exporter, keyRing)),
        ...(proxy === undefined ? [] : credentialsOfProxy(proxy.url)),
    ];
    return [...new Set(all)].filter((text) => text !== '');
}

function lower(name: string): string {
    return name.toLowerCase();
}

/** `Bearer abc` is also `abc`, and `a=b; c=d` also `b` and `d`. */
function partsOfHeader(name: string, value: string): readonly string[] {
    const words = value.split(/[\s,;]+/);
    // the first of several words is the name of a scheme, which is no secret
    const parts = words.slice(words.length > 1 && /^[a-z-]+$/i.test(words[0] ?? '') ? 1 : 0).flatMap((word) => {
        const [, assigned] = /^[\w.-]+=(.+)$/.exec(word) ?? [];
        return assigned === undefined ? [word] : [word, assigned, assigned.replaceAll('"', '')];
    });
    return [value, ...parts.filter(isTelling), ...(isAuthorization(name) ? credentialsIn(value) : [])];
}

/** User and password of `Basic`. */
function credentialsIn(value: string): readonly string[] {
    const [, encoded] = /^basic +([\w+/-]+={0,2})$/i.exec(value) ?? [];
    const text = encoded === undefined ? '' : Buffer.from(encoded, 'base64').toString();
    const colon = text.indexOf(':');
    return [text, text.slice(0, Math.max(0, colon)), text.slice(colon + 1)];
}

/** Words that are common in the paths of receivers, and reveal nothing. */
const COMMON: ReadonlySet<string> = new Set(
    'alert alerts catch collect collector event events hook hooks http https inbound incoming ingest input inputs json notify receive receiver rest service services v1alpha webhook webhooks'.split(
        ' ',
    ),
);

/** The secret parts of a URL: all that comes after the host, as a whole and each part of it, encoded and decoded. */
function partsOfUrl(text: string): readonly string[] {
    const { pathname, search, searchParams } = new URL(text);
    const path = pathname.endsWith('/') ? pathname.slice(0, -1) : pathname;
    const segments = path.split('/').filter((segment) => isTelling(segment) && !COMMON.has(lower(segment)));
    // Names of parameters are no secrets: many a receiver writes "token" about something else.
    const given = search
        .slice(1)
        .split('&')
        .map((pair) => pair.slice(pair.indexOf('=') + 1));
    const values = [...searchParams.values(), ...given].filter(isTelling);
    const whole = path === '' ? [] : [`${pathname}${search}`, pathname, path, ...(path.lastIndexOf('/') > 0 ? [path.slice(1)] : [])];
    const all = [...whole, search, search.slice(1), ...segments, ...values];
    return all.flatMap((part) => [part, decoded(part)]);
}

/** User and password of a proxy, decoded and encoded. They are read as connections read them: for `URL` a backslash ends the host. */
function credentialsOfProxy(url: string): readonly string[] {
    const parsed = parseProxyUrl(url);
    const credentials = typeof parsed === 'string' ? null : parsed.credentials;
    return credentials === null ? [] : [credentials.username, credentials.password].flatMap((part) => [part, encodeURIComponent(part)]);
}

function decoded(part: string): string {
    try {
        return decodeURIComponent(part);
    } catch {
        return part;
    }
}

function isTelling(part: string): boolean {
    return part.length >= MIN_PART;
}
