/** Text from outside, safe to print on a terminal: control and direction characters are shown as `�`. */
export function printable(text: string): string {
    return text.replace(/[\p{Cc}\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, '\uFFFD');
}
