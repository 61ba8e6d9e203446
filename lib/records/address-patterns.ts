/*
 * Regular expressions instead of Joi's own rules for names and addresses: what is a pattern in the Joi schema is the same
 * pattern in the JSON Schema, so both always agree.
 */

const OCTET = '(?:25[0-5]|2[0-4][0-9]|1[0-9]{2}|[1-9]?[0-9])';
const IPV4 = `(?:${OCTET}\\.){3}${OCTET}`;
const GROUP = '[0-9A-Fa-f]{1,4}';

/** The last 32 bits may be written as an IPv4 address. */
const TAIL = `(?:${GROUP}:${GROUP}|${IPV4})`;

/** The forms of RFC 3986, appendix A (`IPv6address`): in full, then with `::` after at most 0, 1, … 7 groups. */
const IPV6 = [
    `(?:${GROUP}:){6}${TAIL}`,
    ...[5, 4, 3, 2, 1, 0].map((after, before) => `${upTo(before)}::(?:${GROUP}:){${after}}${TAIL}`),
    `${upTo(6)}::${GROUP}`,
    `${upTo(7)}::`,
].join('|');

/** At most so many groups, with colons between them. */
function upTo(groups: number): string {
    return groups === 0 ? '' : `(?:(?:${GROUP}:){0,${groups - 1}}${GROUP})?`;
}

const LABEL = '[A-Za-z0-9_](?:[A-Za-z0-9_-]{0,61}[A-Za-z0-9_])?';
/** A name of at most 253 characters, in ASCII as it is on the wire. One that ends in a number would have to be an IPv4 address. */
const NAME = `(?=.{1,253}$)(?:${LABEL}\\.)*(?![0-9]+\\.?$)${LABEL}\\.?`;

/** An IPv4 or IPv6 address, without zone, brackets or prefix length. */
export const IP_PATTERN: RegExp = new RegExp(`^(?:${IPV4}|${IPV6})$`);

/** A host name or an address. Names come first, since most hosts are. */
export const HOST_PATTERN: RegExp = new RegExp(`^(?:${NAME}|${IPV4}|${IPV6})$`);
