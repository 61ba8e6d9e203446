import { domainToASCII, domainToUnicode } from 'node:url';
import { HOST_PATTERN, withoutBrackets } from '../addresses.ts';

/** Why a text is no URL to call. */
export type UrlFault =
    /** Longer than the caller allows. */
    | 'too_long'
    | 'control_characters'
    /** Not `http://` or `https://` with a host behind it. */
    | 'not_absolute'
    /** A user name or password, even an empty one. */
    | 'credentials'
    /** A backslash before the query. */
    | 'backslash'
    /** Nothing that a URL parser takes; also an `xn--` label that encodes no text. */
    | 'malformed'
    | 'host_too_long'
    /** The host is neither a name nor an IP address. */
    | 'host_invalid'
    | 'port_zero';

const MAX_NAME_LENGTH = 253;
const DEFAULT_PORTS: Readonly<Record<string, number>> = { 'http:': 80, 'https:': 443 };

/**
 * The absolute http or https URL in a text, as WHATWG URL writes it, without a fragment and without the dot that may end a host
 * name; or why there is none. Refuses what URL would take silently, though a person who meant it wrote something else.
 *
 * Nothing is resolved and no address judged here: that is the guard's part.
 *
 * @param maxLength Longest text, in characters.
 */
export function parseOutgoingUrl(text: string, maxLength: number): URL | UrlFault {
    const fault = faultOfText(text, maxLength) ?? (URL.canParse(text) ? null : 'malformed');
    if (fault !== null) {
        return fault;
    }

    const url = new URL(text);
    const hostFault = faultOfHost(url);
    if (hostFault !== null) {
        return hostFault;
    }

    url.hash = '';
    if (url.hostname.endsWith('.')) {
        url.hostname = url.hostname.slice(0, -1);
    }

    return url.port === '0' ? 'port_zero' : url;
}

/** The port that a URL leads to. */
export function portOf({ port, protocol }: URL): number {
    return port === '' ? (DEFAULT_PORTS[protocol] ?? 0) : Number(port);
}

/** The host of a URL as resolvers and certificates know it: an IPv6 address without its brackets. */
export function hostOf({ hostname }: URL): string {
    return withoutBrackets(hostname);
}

function faultOfText(text: string, maxLength: number): UrlFault | null {
    if (text.length > maxLength) {
        return 'too_long';
    }

    if (/[\p{Cc}\p{Cs}\p{Zl}\p{Zp}]/u.test(text)) {
        return 'control_characters';
    }

    const [, authority] = /^https?:\/\/([^/?#]+)/i.exec(text) ?? [];
    if (authority === undefined) {
        return 'not_absolute';
    }

    return authority.includes('@') ? 'credentials' : /^[^?#]*\\/.test(text) ? 'backslash' : null;
}

function faultOfHost(url: URL): UrlFault | null {
    if (!isWellEncoded(url.hostname)) {
        return 'malformed';
    }

    const host = hostOf(url);
    return HOST_PATTERN.test(host) ? null : host.length > MAX_NAME_LENGTH ? 'host_too_long' : 'host_invalid';
}

/** Whether every `xn--` label is what some text is written as; URL parsers differ in this from one release of Node to the next. */
function isWellEncoded(name: string): boolean {
    if (!name.includes('xn--')) {
        return true;
    }

    const text = domainToUnicode(name);
    return !/(^|\.)xn--/.test(text) && domainToASCII(text) === name;
}
