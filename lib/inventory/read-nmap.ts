import { TextDecoder } from 'node:util';
import sax from 'sax';
import { ScanwireError } from '../errors.ts';
import type { HostInput } from './host.ts';
import { normaliseHost } from './host-input.ts';
import { type NmapHost, nmapHost } from './nmap-host.ts';

const SLICE = 64 * 1024;
/** Longest tag, text or comment, in characters. The output of a script sits in one attribute and can be long. */
const TOKEN_LIMIT = 1024 * 1024;
const DEPTH_LIMIT = 64;

/**
 * Reads the XML of nmap (and of scanners that write the same form), as it arrives and in constant memory.
 *
 * A host that is down is left out unless the scan says more about it than that: nmap lists such hosts only when it is verbose,
 * so a ping sweep gives the same hosts with and without `-v`. Entities other than XML's own five are refused, never expanded.
 *
 * @throws ScanwireError `INVALID_INPUT` with line, column and reason: not XML, not a scan, cut off, an impossible value.
 */
export async function* readNmap(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const scan = scanParser();
    const decoder = new TextDecoder('utf-8', { fatal: true });

    for await (const chunk of source) {
        for (let start = 0; start < chunk.byteLength; start += SLICE) {
            yield* scan.write(decode(decoder, chunk.subarray(start, start + SLICE), scan));
        }
    }

    yield* scan.write(decode(decoder, null, scan));
    scan.end();
}

interface ScanParser {
    /** Hosts that ended within the text. */
    write(text: string): readonly HostInput[];
    end(): void;
    fail(reason: string): ScanwireError;
}

function scanParser(): ScanParser {
    // `strictEntities` is missing in the parser's types.
    const options = { position: true, strictEntities: true };
    const parser = Object.assign(sax.parser(true, options), { bufferCheckPosition: Number.POSITIVE_INFINITY });
    const path: string[] = [];
    let hosts: HostInput[] = [];
    let host: NmapHost | null = null;
    let tokenStart = 0;
    let complete = false;

    const fail = (reason: string, field?: string): ScanwireError =>
        new ScanwireError(
            'INVALID_INPUT',
            `Line ${parser.line + 1}, column ${parser.column}: ${reason}`,
            field === undefined ? {} : { field },
        );

    const normalise = (scanned: object): HostInput => {
        try {
            return normaliseHost(scanned);
        } catch (error) {
            throw error instanceof ScanwireError ? fail(`in the host that ends here, ${error.message}`, error.field) : error;
        }
    };

    const endToken = (): void => {
        tokenStart = parser.position;
    };

    Object.assign(parser, {
        onopentag: ({ name, attributes }: sax.Tag) => {
            endToken();
            if (path.length === 0 && name !== 'nmaprun') {
                throw fail('this is XML, but not a scan of nmap: its outermost element must be nmaprun');
            }

            if (path.push(name) > DEPTH_LIMIT) {
                throw fail(`elements are nested deeper than ${DEPTH_LIMIT}`);
            }

            if (path.length === 2 && name === 'host') {
                host = nmapHost();
            } else {
                host?.open(name, attributes);
            }
        },

        onclosetag: () => {
            endToken();
            path.pop();
            complete = path.length === 0;
            if (path.length === 1 && host !== null) {
                const scanned = host.finish();
                host = null;
                if (scanned !== null) {
                    hosts.push(normalise(scanned));
                }
            }
        },

        ontext: endToken,
        oncomment: endToken,
        onprocessinginstruction: endToken,
        oncdata: endToken,

        ondoctype: (doctype: string) => {
            endToken();
            if (doctype.includes('[')) {
                throw fail('a document type with declarations of its own is not accepted');
            }
        },

        onerror: (error: Error) => {
            throw fail(complaint(error));
        },
    });

    return {
        fail,

        write(text) {
            parser.write(text);
            if (parser.position - tokenStart > TOKEN_LIMIT) {
                throw fail('a single tag, text or comment is longer than 1 MiB');
            }

            const ended = hosts;
            hosts = [];
            return ended;
        },

        end() {
            if (!complete) {
                throw fail('the file ends before </nmaprun>: the scan did not finish, or the file was cut off');
            }

            parser.close();
        },
    };
}

/** The parser writes position and character below its message; only the message is wanted. */
function complaint({ message }: Error): string {
    const [first = ''] = message.split('\n');
    return `not well-formed XML: ${first.charAt(0).toLowerCase()}${first.slice(1).replace(/\.$/, '')}`;
}

function decode(decoder: TextDecoder, bytes: Uint8Array | null, scan: ScanParser): string {
    try {
        return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
        throw scan.fail('not UTF-8 text');
    }
}
