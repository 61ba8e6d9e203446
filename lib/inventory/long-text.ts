/** Longest text of one field, in UTF-16 code units. */
export const MAX_TEXT = 65_536;

const HALF_PAIR = /[\ud800-\udbff]$/;

/** The beginning of a text, without half a surrogate pair at its end: that could not be stored. */
export function beginningOf(text: string, most: number): string {
    return text.length <= most ? text : text.slice(0, most).replace(HALF_PAIR, '');
}

/** A text as it is where it is not too long, else its beginning and `…`. @param most 1 or more. */
export function shortened(text: string, most: number = MAX_TEXT): string {
    return text.length <= most ? text : `${beginningOf(text, most - 1)}…`;
}
