/** What parsers of HTTP and HTML stumble over. */
const TOKENS = [
    '\r\n',
    '\n',
    '\r\n\r\n',
    '\n\n',
    '\r',
    '\0',
    '\r\n ',
    ':',
    ',',
    ';',
    'HTTP/1.1 100 Continue\r\n\r\n',
    'HTTP/1.1 200 OK\r\n',
    'Transfer-Encoding: chunked\r\n',
    'Transfer-Encoding: gzip\r\n',
    'Content-Encoding: gzip\r\n',
    'Content-Encoding: deflate\r\n',
    'Content-Encoding: br, zstd\r\n',
    'Content-Length: 5\r\n',
    'Content-Length: -1\r\n',
    'Content-Type: text/html; charset=utf-16\r\n',
    '0\r\n\r\n',
    'ffffffffffffffff\r\n',
    '-1\r\n',
    '\x1f\x8b\x08\0',
    '\x28\xb5\x2f\xfd',
    '\x78\x9c',
    '\xef\xbb\xbf',
    '\xff\xfe',
    '<title>',
    '</title>',
    '<!--',
    '<script>',
    '<svg>',
    '&#x110000;',
    '&amp',
    '<meta charset=shift_jis>',
].map((token) => Buffer.from(token, 'latin1'));

const MOST_CHANGES = 6;
const LONGEST_PART = 64;

/** The bytes with up to six changes: bits flipped, parts cut out, put in or repeated, the end cut off. `random` gives 0 up to 1. */
export function mutated(bytes: Uint8Array, random: () => number): Uint8Array {
    const below = (end: number): number => Math.floor(random() * end);
    let mutant = Buffer.from(bytes);
    for (let left = 1 + below(MOST_CHANGES); left > 0; left -= 1) {
        const at = below(mutant.length + 1);
        const end = Math.min(at + 1 + below(LONGEST_PART), mutant.length);
        const [before, part, after] = [mutant.subarray(0, at), mutant.subarray(at, end), mutant.subarray(end)];
        switch (below(6)) {
            case 0:
                mutant[at] = (mutant[at] ?? 0) ^ (1 << below(8));
                break;
            case 1:
                mutant = Buffer.concat([before, after]);
                break;
            case 2:
                mutant = Buffer.concat([before, TOKENS[below(TOKENS.length)] ?? part, part, after]);
                break;
            case 3:
                mutant = Buffer.concat([before, ...Array.from({ length: 2 + below(20) }, () => part), after]);
                break;
            case 4:
                mutant = Buffer.concat([before, Buffer.from(Array.from(part, () => below(256))), after]);
                break;
            default:
                mutant = random() < 0.2 ? before : mutant;
        }
    }

    return mutant;
}
