/** Longer texts are no times. */
const MAX_LENGTH = 100;

/** What JavaScript takes for a zone: a name behind a number, or a signed number behind a time of day. */
const ZONES = [
    { behind: /\d/, zone: /(?<![a-z])(?:z|utc?|gmt|[ecmp][sd]t)(?![a-z])/i },
    { behind: /:\d/, zone: /[+-]\d/ },
] as const;
const COMMENT = /\([^()]*\)/g;

/**
 * The time that a text says, in any form that JavaScript reads; null for none. A text without a zone is read in UTC, since the zone of the machine
 * would make other bytes of the same event elsewhere.
 */
export function writtenTime(text: string): Date | null {
    if (text.length > MAX_LENGTH) {
        return null;
    }

    const plain = text.replace(COMMENT, ' ').trim();
    // ISO 8601 has the letter alone, and the other forms may need the space.
    const zoned = hasZone(plain) ? [plain] : [`${plain}Z`, `${plain} UTC`];
    const time = zoned.map((written) => Date.parse(written)).find((parsed) => !Number.isNaN(parsed));
    return time === undefined ? null : new Date(time);
}

function hasZone(text: string): boolean {
    return ZONES.some(({ behind, zone }) => {
        const at = text.search(behind);
        return at !== -1 && zone.test(text.slice(at));
    });
}
