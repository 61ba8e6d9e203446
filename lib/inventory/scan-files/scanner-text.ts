import { MAX_NAME } from '../findings.ts';
import { beginningOf, shortened } from '../long-text.ts';

/* Texts as scanners write them, as the inventory keeps them. */

/** A name that is not too long, of what a scanner calls a vulnerability. */
export function vulnName(text: string): string {
    return beginningOf(text.trim(), MAX_NAME);
}

/** What a scanner says of a vulnerability: the output of one that lists a disk can be longer than a text may be, and is cut off. */
export function vulnInfo(text: string): string {
    return shortened(text);
}

/** What a scanner says of a service, as a database keeps it: whoever was scanned has chosen it, and one server must not make the scan of all others fail. What is no text is for the rules for hosts. */
export function serviceText<Value>(value: Value): Value | string {
    return typeof value === 'string' ? shortened(storable(value)) : value;
}

/**
 * The text of bytes that a scanner has written one by one, as `\xc3`.
 *
 * @param runs Finds escapes that follow each other. Those that are no UTF-8 together stay as they are.
 */
export function withoutByteEscapes(text: string, runs: RegExp): string {
    return text.includes('\\x') ? text.replace(runs, bytesOf) : text;
}

function bytesOf(run: string): string {
    const bytes = Buffer.from(run.replaceAll('\\x', ''), 'hex');
    const decoded = bytes.toString();
    return decoded.includes('\ufffd') ? run : storable(decoded);
}

/** Without NUL, which PostgreSQL does not store, and halves of surrogate pairs, which have no UTF-8. */
function storable(text: string): string {
    return text.replace(UNSTORABLE, '\ufffd');
}

const UNSTORABLE = /[\0\p{Cs}]/gu;

/** Of the banners that masscan names, those that name the protocol of the port; the others are about a part of what was read. */
const BANNERS: ReadonlySet<unknown> = new Set([
    ...['coap', 'ftp', 'http', 'imap', 'memcached', 'nbtstat', 'ntp', 'pop', 'rdp', 'smb', 'smtp', 'snmp', 'ssh', 'ssl', 'telnet', 'vnc'],
]);

/** Name and info of a service from a banner of masscan; nothing where it does not tell the protocol. */
export function bannerService(name: unknown, banner: unknown): Readonly<Record<string, unknown>> {
    return BANNERS.has(name) ? { name, info: banner === '' ? null : serviceText(banner) } : {};
}
