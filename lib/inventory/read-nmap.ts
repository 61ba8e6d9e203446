import { TextDecoder } from 'node:util';
import sax from 'sax';
import { ScanwireError } from '../errors.ts';
import { type PortRange, portRanges } from './closed-ports.ts';
import type { HostInput } from './host.ts';
import { normaliseHost } from './host-input.ts';
import { type Attributes, type NmapHost, nmapHost } from './nmap-host.ts';

const SLICE = 64 * 1024;
/** Longest tag, text or comment, in characters. The output of a script sits in one attribute and can be long. */
const MAX_TOKEN = 1024 * 1024;
const MAX_DEPTH = 64;

/**
 * Reads the XML of nmap (and of scanners that write the same form), as it arrives and in constant memory.
 *
 * A host that is down is told to those who know it alone (`if_known`), unless the scan says more about it than that: nmap lists such hosts
 * only when it is verbose. One of unknown state is left out: a list scan (`-sL`) probes none of the addresses that it lists. Entities other than XML's own five are refused, never expanded.
 *
 * @throws ScanwireError `INVALID_INPUT` with line, column and reason: not XML, not a scan, cut off, an impossible value.
 */
export async function* readNmap(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const scan = scanParser();
    const decoder = new TextDecoder('utf-8', { fatal: true });

    for await (const chunk of source) {
        for (let start = 0; start < chunk.byteLength; start += SLICE) {
            yield* scan.write(decode(decoder, chunk.subarray(start, start + SLICE), scan.fail));
        }
    }

    yield* scan.write(decode(decoder, null, scan.fail));
    scan.end();
}

/** An error at the place that the parser has come to. */
type Fail = (reason: string, field?: string) => ScanwireError;

function scanParser() {
    // `strictEntities` is missing in the parser's types.
    const options = { position: true, strictEntities: true };
    const parser = Object.assign(sax.parser(true, options), { bufferCheckPosition: Number.POSITIVE_INFINITY });
    const fail: Fail = (reason, field) =>
        new ScanwireError(
            'INVALID_INPUT',
            `Line ${parser.line + 1}, column ${parser.column}: ${reason}`,
            field === undefined ? {} : { field },
        );
    const elements = scanElements(fail);
    let tokenStart = 0;

    const endToken = (): void => {
        tokenStart = parser.position;
    };

    Object.assign(parser, {
        onopentag: ({ name, attributes }: sax.Tag) => {
            endToken();
            elements.open(name, attributes);
        },
        onclosetag: () => {
            endToken();
            elements.close();
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

        /** Hosts that ended within the text. */
        write(text: string): readonly HostInput[] {
            parser.write(text);
            if (parser.position - tokenStart > MAX_TOKEN) {
                throw fail('a single tag, text or comment is longer than 1 MiB');
            }

            return elements.hosts.splice(0);
        },

        end(): void {
            if (!elements.isComplete()) {
                throw fail('the file ends before </nmaprun>: the scan did not finish, or the file was cut off');
            }

            parser.close();
        },
    };
}

/** What the elements of a scan come to: `hosts` are those whose element has ended, to be taken out. */
function scanElements(fail: Fail) {
    const path: string[] = [];
    const hosts: HostInput[] = [];
    const scanned = new Map<string, readonly PortRange[]>();
    let host: NmapHost | null = null;
    let complete = false;

    return {
        hosts,
        isComplete: (): boolean => complete,

        open(name: string, attributes: Attributes): void {
            if (path.length === 0 && name !== 'nmaprun') {
                throw fail('this is XML, but not a scan of nmap: its outermost element must be nmaprun');
            }

            if (path.push(name) > MAX_DEPTH) {
                throw fail(`elements are nested deeper than ${MAX_DEPTH}`);
            }

            if (path.length === 2 && name === 'host') {
                host = nmapHost(scanned);
            } else if (path.length === 2 && name === 'scaninfo') {
                scanned.set(attributes.protocol ?? '', portRanges(attributes.services ?? ''));
            } else {
                host?.open(name, attributes);
            }
        },

        close(): void {
            path.pop();
            complete = path.length === 0;
            if (path.length === 1 && host !== null) {
                const scanned = host.finish();
                host = null;
                if (scanned !== null) {
                    hosts.push(normalised(scanned, fail));
                }
            }
        },
    };
}

function normalised(scanned: object, fail: Fail): HostInput {
    try {
        return normaliseHost(scanned);
    } catch (error) {
        throw error instanceof ScanwireError ? fail(`in the host that ends here, ${error.message}`, error.field) : error;
    }
}

/** The parser writes position and character below its message; only the message is wanted. */
function complaint({ message }: Error): string {
    const [first = ''] = message.split('\n');
    return `not well-formed XML: ${first.charAt(0).toLowerCase()}${first.slice(1).replace(/\.$/, '')}`;
}

function decode(decoder: TextDecoder, bytes: Uint8Array | null, fail: Fail): string {
    try {
        return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
    } catch {
        throw fail('not UTF-8 text');
    }
}
