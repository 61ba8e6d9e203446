import { isUtf8 } from 'node:buffer';
import { HOST_PATTERN, IP_PATTERN, withBrackets, withoutBrackets } from '../../addresses.ts';
import { hostOf, parseOutgoingUrl, portOf, type UrlFault } from '../../egress/outgoing-url.ts';
import { ScanwireError } from '../../errors.ts';
import { lineSplitter, linesOf } from '../../line-splitter.ts';

/** What to ask for, and where. */
export interface CaptureTarget {
    /** A name in ASCII or an address, without brackets. */
    readonly host: string;
    /** 1 to 65535. */
    readonly port: number;
    /** Path and query as they are sent; begins with `/`. */
    readonly path: string;
    /** The address to connect to, instead of those that the host resolves to. */
    readonly address?: string;
}

/** In characters; longer paths are refused by servers as well. */
export const MAX_TARGET_LENGTH = 8192;
const HTTPS_PORT = 443;

const RULES: Readonly<Record<string, (value: unknown) => boolean>> = {
    host: (value) => typeof value === 'string' && HOST_PATTERN.test(value),
    port: (value) => Number.isInteger(value) && Number(value) >= 1 && Number(value) <= 65535,
    path: (value) => typeof value === 'string' && value.length <= MAX_TARGET_LENGTH && /^\/[!-~]*$/.test(value),
    address: (value) => value === undefined || (typeof value === 'string' && IP_PATTERN.test(value)),
};

const NO_TARGET = 'is neither an https URL nor host:port';
const NO_HOST = 'has a host that is neither a name nor an IP address';
const REFUSALS: Readonly<Record<UrlFault, string>> = {
    too_long: `is longer than ${MAX_TARGET_LENGTH} characters`,
    control_characters: 'contains control characters',
    not_absolute: NO_TARGET,
    credentials: 'contains a user name, a password or a backslash before the path',
    backslash: 'contains a backslash before the query',
    malformed: NO_TARGET,
    host_too_long: NO_HOST,
    host_invalid: NO_HOST,
    port_zero: 'has port 0',
};

/**
 * Reads `https://name:port/path?query`, `name:port` or `name`, and behind a blank the address to connect to, if it is not the
 * name that says it: `https://web.example.test/ 192.0.2.7`. An IPv6 address has brackets before a port; the port is 443 when
 * absent; a name may be written in any script; a fragment is dropped.
 *
 * @throws ScanwireError `INVALID_INPUT`, field `target`, with the reason but not the text.
 */
export function parseTarget(text: string): CaptureTarget {
    if (text.length > MAX_TARGET_LENGTH) {
        throw refused(REFUSALS.too_long);
    }

    const [where = '', address, ...more] = text.split(/[ \t]+/).filter((part) => part !== '');
    if (more.length > 0) {
        throw refused('has more than a URL and an address');
    }

    const url = parseUrl(where);
    const path = url.pathname + url.search;
    if (path.length > MAX_TARGET_LENGTH) {
        throw refused(`has a path of more than ${MAX_TARGET_LENGTH} characters when encoded`);
    }

    return { host: hostOf(url), port: portOf(url), path, ...(address !== undefined && { address: parseAddress(address) }) };
}

/**
 * The target itself.
 *
 * @throws ScanwireError `INVALID_INPUT` with the field that cannot be sent.
 */
export function checkTarget(target: CaptureTarget): CaptureTarget {
    const wrong = Object.keys(RULES).find((field) => RULES[field]?.(target[field as keyof CaptureTarget]) !== true);
    if (wrong !== undefined) {
        throw new ScanwireError('INVALID_INPUT', `Target: ${wrong} is invalid`, { field: wrong });
    }

    return target;
}

/** What goes into the `Host` header. */
export function authorityOf({ host, port }: Pick<CaptureTarget, 'host' | 'port'>): string {
    return port === HTTPS_PORT ? withBrackets(host) : `${withBrackets(host)}:${port}`;
}

/** @throws ScanwireError `INVALID_INPUT` for anything but an https URL or `host:port`. */
function parseUrl(where: string): URL {
    const isUrl = where.includes('://');
    if (isUrl && !/^https:/i.test(where)) {
        throw refused('is not an https URL');
    }

    if (!isUrl && /[/?#]/.test(where)) {
        throw refused(REFUSALS.not_absolute);
    }

    const url = parseOutgoingUrl(isUrl ? where : `https://${withBrackets(where)}`, MAX_TARGET_LENGTH);
    if (typeof url === 'string') {
        throw refused(REFUSALS[url]);
    }

    return url;
}

function parseAddress(text: string): string {
    const address = withoutBrackets(text);
    if (!IP_PATTERN.test(address)) {
        throw refused('has an address to connect to that is no IP address');
    }

    return address;
}

function refused(reason: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Target ${reason}`, { field: 'target' });
}

/** A line of a list of targets, or what is wrong with it. */
export type TargetLine = {
    /** From 1; blank lines and comments count. */
    readonly line: number;
} & Parsed;

type Parsed = { readonly ok: true; readonly target: CaptureTarget } | { readonly ok: false; readonly reason: string };

/** UTF-8 takes at most three bytes for what is one character in JavaScript. */
const MAX_LINE_BYTES = 3 * MAX_TARGET_LENGTH;

/**
 * Reads a list of targets, one in each line in the form of {@link parseTarget}. Blank lines and those that begin with `#` are
 * passed over; a bad line is reported and does not end the reading. Holds no more than a line at a time.
 */
export async function* readTargetLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<TargetLine, void, undefined> {
    for await (const lines of linesOf(source, lineSplitter(MAX_LINE_BYTES))) {
        for (const { number: line, bytes } of lines) {
            const parsed = parseLine(bytes);
            if (parsed !== null) {
                yield { line, ...parsed };
            }
        }
    }
}

/** Null for a line that is passed over. */
function parseLine(bytes: Uint8Array | null): Parsed | null {
    if (bytes === null || !isUtf8(bytes)) {
        return { ok: false, reason: bytes === null ? `is longer than ${MAX_LINE_BYTES} bytes` : 'is not valid UTF-8' };
    }

    // a byte order mark counts as white space
    const text = Buffer.from(bytes).toString().trim();
    if (text === '' || text.startsWith('#')) {
        return null;
    }

    try {
        return { ok: true, target: parseTarget(text) };
    } catch (error) {
        if (error instanceof ScanwireError) {
            return { ok: false, reason: error.message.replace(/^Target /, '') };
            /* c8 ignore next 4 -- parseTarget refuses by no other error: this would be a fault of ours, not of the line */
        }

        throw error;
    }
}
