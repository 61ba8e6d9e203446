import { isIP } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';
import type { EgressGuard } from '../egress/guard.ts';
import { ScanwireError } from '../errors.ts';

const MAX_LENGTH = 2048;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };
const NAME = /^[a-z0-9_]([a-z0-9_-]{0,62})(\.[a-z0-9_]([a-z0-9_-]{0,62}))*$/;

/**
 * The receiver's URL in the one form that is stored, shown, called and compared: as WHATWG URL writes it, without a fragment
 * and without the dot that may end a host name. Run at save and again at send, so that nothing depends on who wrote the row.
 *
 * A name is not resolved here; the addresses it leads to are vetted at each connect.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `url`, with the reason but never the URL: it may hold a secret.
 */
export function checkReceiverUrl(text: string, guard: Pick<EgressGuard, 'vetHost'>): string {
    if (typeof text !== 'string' || text.trim() === '') {
        throw refused('must be an absolute http or https URL');
    }

    const raw = text.replace(/^ +| +$/g, '');
    const wrong = wrongText(raw);
    if (wrong !== null) {
        throw refused(wrong);
    }

    const url = parse(raw);
    const host = hostOf(url);
    const wrongHost = isIP(host) === 0 ? wrongName(host) : null;
    if (wrongHost !== null) {
        throw refused(wrongHost);
    }

    const refusal = guard.vetHost(host, portOf(url));
    if (refusal !== null) {
        throw refused(`points to ${refusal}, which is not open to receivers`);
    }

    if (url.port === '0') {
        throw refused('must not have port 0');
    }

    if (url.href.length > MAX_LENGTH) {
        throw refused(`must be at most ${MAX_LENGTH} characters once written out`);
    }

    return url.href;
}

/** A URL for logs and people: without userinfo and fragment, with every value of the query as `***`. */
export function displayUrl(text: string): string {
    if (!URL.canParse(text)) {
        return 'invalid URL';
    }

    const { protocol, host, pathname, search } = new URL(text);
    return `${protocol}//${host}${pathname}${redacted(search)}`;
}

/** The port that a URL leads to. */
export function portOf({ port, protocol }: URL): number {
    return port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port);
}

/** The host of a URL as resolvers and certificates know it: an IPv6 address without its brackets. */
export function hostOf(url: URL): string {
    return url.hostname.replace(/^\[(.*)\]$/, '$1');
}

/** What WHATWG URL would take silently, though a person who meant it wrote something else. */
function wrongText(raw: string): string | null {
    if (raw.length > MAX_LENGTH) {
        return `must be at most ${MAX_LENGTH} characters`;
    }

    if (/[\p{Cc}\p{Zl}\p{Zp}]/u.test(raw)) {
        return 'must not contain control characters';
    }

    const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(raw) ?? [];
    if (authority === undefined) {
        return 'must be an absolute http or https URL';
    }

    if (authority.includes('@')) {
        return 'must not contain a user name or password: use an additional header';
    }

    return /^[^?#]*\\/.test(raw) ? 'must not contain a backslash before the query' : null;
}

function parse(raw: string): URL {
    if (!URL.canParse(raw)) {
        throw refused('is not a valid URL');
    }

    const url = new URL(raw);
    url.hash = '';
    if (url.hostname.endsWith('.')) {
        url.hostname = url.hostname.slice(0, -1);
    }

    if (!isWellEncoded(url.hostname)) {
        throw refused('is not a valid URL');
    }

    return url;
}

/** Whether every `xn--` label is what some text is written as; URL parsers differ in this from one release of Node to the next. */
function isWellEncoded(name: string): boolean {
    const text = domainToUnicode(name);
    return !name.includes('xn--') || (!/(^|\.)xn--/.test(text) && domainToASCII(text) === name);
}

function wrongName(name: string): string | null {
    if (name.length > 253) {
        return 'has a host name of more than 253 characters';
    }

    return NAME.test(name) ? null : 'has a host that is neither a name nor an IP address';
}

function redacted(search: string): string {
    return search === '' ? '' : `?${search.slice(1).split('&').map(redactedPair).join('&')}`;
}

/** A pair without `=` may be a bare token, so it goes as a whole. */
function redactedPair(pair: string): string {
    const [name = '', ...values] = pair.split('=');
    return values.length === 0 ? '***' : `${name}=***`;
}

function refused(reason: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `url ${reason}`, { field: 'url' });
}
