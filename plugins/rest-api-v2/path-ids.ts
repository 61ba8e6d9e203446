const PLAIN_DECIMAL = /^(?:0|[1-9]\d{0,9})$/;
const MAX_ID = 2_147_483_647;

/** The ids of a path, from the outside in; null unless each is a plain decimal number of 32 bits: no row has another id. */
export function pathIds(segments: readonly string[]): readonly number[] | null {
    const ids = segments.map((segment) => (PLAIN_DECIMAL.test(segment) ? Number(segment) : Number.NaN));
    return ids.every((id) => id <= MAX_ID) ? ids : null;
}
