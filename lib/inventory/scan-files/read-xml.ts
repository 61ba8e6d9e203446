import { isAscii } from 'node:buffer';
import { TextDecoder } from 'node:util';
import { SaxesParser } from 'saxes';
import { ScanwireError } from '../../errors.ts';
import type { HostInput } from '../host.ts';
import { normaliseHost } from '../host-input.ts';
import { type BadLines, badLines } from './bad-lines.ts';
import { metasploitForm } from './metasploit-host.ts';
import { nessusForm } from './nessus-host.ts';
import { nmapForm } from './nmap-host.ts';

const SLICE = 64 * 1024;
/**
 * Longest tag, text or comment, in characters. Nessus has the output of a plugin in one text, and before all hosts the numbers of all plugins; nmap has that of a
 * script in one attribute.
 */
const MAX_TOKEN = 8 * 1024 * 1024;
/** Longest host, in MiB of text: it is held until it has ended. */
const MAX_HOST = 32;
/** Scanners write control characters that they were sent, though XML has none: as they are, or by a number, which then stays as it is written. */
const TOLERATED: ReadonlySet<string> = new Set(['disallowed character.', 'malformed character entity.']);
const MAX_DEPTH = 64;

/** Attributes of an element, as the parser gives them. */
export type Attributes = Readonly<Record<string, string | undefined>>;

/** What a scan says about a host, before it is normalised. */
export type ScannedHost = Readonly<Record<string, unknown>>;

/** Takes what is inside of the element of a host; knows nothing of what it does not use. */
export interface HostElements {
    /** @throws ScanwireError `INVALID_INPUT`, as `close` does, where the host is refused whatever comes: the rest of it is read over. */
    open(element: string, attributes: Attributes): void;
    close?(element: string): void;
    /** A piece of text, blanks between elements too. */
    text?(text: string): void;
    /** The host; null for one that is left out. */
    finish(): ScannedHost | null;
}

/** What the XML of a scanner is like. */
export interface XmlForm {
    /** Paths of the elements of hosts below the outermost element, with `/` between their names. */
    readonly paths: readonly string[];
    /** Reads one file. @param fail Makes the error that is thrown where the file says that it is not whole. */
    reader(fail: Fail): {
        host(attributes: Attributes, path: string): HostElements;
        /** An element outside of hosts. */
        beside?(element: string, attributes: Attributes): void;
        /** After the last host: what the file leaves open, as a sentence; null for nothing. */
        warning?(): string | null;
    };
}

/** How the XML of a scanner is read. */
export interface XmlReading {
    /** Longest host, in MiB of text. */
    readonly maxHost?: number | undefined;
    /** Told, as a sentence, of what a complete file leaves open; nobody by default. */
    readonly onWarning?: ((message: string) => void) | undefined;
}

/** By the outermost element. */
const FORMS: ReadonlyMap<string, XmlForm> = new Map([
    ['nmaprun', nmapForm],
    ['MetasploitV3', metasploitForm],
    ['MetasploitV4', metasploitForm],
    ['MetasploitV5', metasploitForm],
    ['NessusClientData_v2', nessusForm],
]);

/**
 * Reads the XML of nmap (and of scanners that write the same form), of `db_export` of the Metasploit Framework, or of Nessus, as it arrives
 * and in constant memory.
 *
 * Of nmap, a host that is down is told to those who know it alone (`if_known`), unless the scan says more about it than that: nmap lists such hosts
 * only when it is verbose. One of unknown state is left out: a list scan (`-sL`) probes none of the addresses that it lists. Entities other than XML's own five are refused, never expanded.
 *
 * @throws ScanwireError `INVALID_INPUT` with line, column and reason: not XML, not a scan, cut off, an impossible value; of hosts with such
 *     values it names each, and after the first 100 it reads no further. Behind a bad host there are no others.
 */
export async function* readXmlScan(
    source: AsyncIterable<Uint8Array>,
    { maxHost = MAX_HOST, onWarning }: XmlReading = {},
): AsyncGenerator<HostInput, void, undefined> {
    const bad = badLines();
    const scan = xmlParser(maxHost, bad);
    const decode = utf8(scan.fail);
    // What is noted as bad already goes out with what ends the reading.
    const attempt = <T>(read: () => T): T => {
        try {
            return read();
        } catch (error) {
            if (bad.found() && (error as ScanwireError).problems === undefined) {
                bad.end(scan.line(), error);
            }
            throw error;
        }
    };

    for await (const chunk of source) {
        for (let start = 0; start < chunk.byteLength; start += SLICE) {
            yield* attempt(() => scan.write(decode(chunk.subarray(start, start + SLICE))));
        }
    }

    yield* attempt(() => scan.write(decode(null)));
    attempt(scan.end);
    bad.end();
    const warning = scan.warning();
    if (warning !== null) {
        onWarning?.(warning);
    }
}

/** An error at the place that the parser has come to. */
type Fail = (reason: string, field?: string) => ScanwireError;

/** Goes on behind what is tolerated. An error made for each of such characters, with its stack, would cost 4 s for a megabyte of them. */
class ScanParser extends SaxesParser {
    override fail(message: string): this {
        return TOLERATED.has(message) ? this : super.fail(message);
    }
}

function xmlParser(maxHost: number, bad: BadLines) {
    const parser = new ScanParser({});
    const line = (): number => parser.line;
    const fail: Fail = (reason, field) =>
        new ScanwireError('INVALID_INPUT', `Line ${line()}, column ${parser.column}: ${reason}`, field === undefined ? {} : { field });
    const elements = scanElements(fail, { position: () => parser.position, onBad: (error) => bad.add(line(), error) });
    /** Where the tag, text or comment began that the parser is in. */
    let start = 0;
    const ended = (): void => {
        start = parser.position;
    };
    const takeText = (text: string): void => {
        ended();
        elements.text(text);
    };

    // With a seventh handler the parser takes twice as long, with an eighth five times: V8 makes a dictionary of an object to which so much is added.
    parser.on('opentag', ({ name, attributes }) => {
        ended();
        elements.open(name, attributes);
    });
    parser.on('closetag', () => {
        ended();
        elements.close();
    });
    parser.on('text', takeText);
    parser.on('cdata', takeText);
    parser.on('doctype', (doctype) => {
        ended();
        if (doctype.includes('[')) {
            throw fail('a document type with declarations of its own is not accepted');
        }
    });
    parser.on('error', (error) => {
        throw fail(complaint(error));
    });

    return {
        fail,
        line,
        warning: elements.warning,

        /** Hosts that ended within the text; none behind a bad one. */
        write(text: string): readonly HostInput[] {
            parser.write(text);
            if (parser.position - start > MAX_TOKEN) {
                throw fail('a single tag, text or comment is longer than 8 MiB');
            }

            if (elements.lengthOfHost() > maxHost * 1024 * 1024) {
                throw fail(`a single host is longer than ${maxHost} MiB`);
            }

            const ended = elements.hosts.splice(0);
            return bad.found() ? [] : ended;
        },

        end(): void {
            if (!elements.isComplete()) {
                throw fail(`the file ends before </${elements.root() ?? 'nmaprun'}>: the scan did not finish, or the file was cut off`);
            }

            parser.close();
        },
    };
}

/** What the elements of a scan come to: `hosts` are those whose element has ended, to be taken out. */
function scanElements(fail: Fail, { position, onBad }: { readonly position: () => number; readonly onBad: (error: unknown) => void }) {
    const path: string[] = [];
    const hosts: HostInput[] = [];
    let form: XmlForm | null = null;
    let reader: ReturnType<XmlForm['reader']> | null = null;
    let root: string | undefined;
    let host: HostElements | null = null;
    let [hostStart, hostDepth] = [0, 0];

    function begin(name: string): void {
        form = FORMS.get(name) ?? null;
        if (form === null) {
            throw fail(
                'this is XML, but not a scan of nmap, Metasploit or Nessus: its outermost element must be nmaprun, MetasploitV5 or NessusClientData_v2',
            );
        }

        root = name;
        reader = form.reader(fail);
    }

    function refuse(error: unknown): void {
        host = READ_OVER;
        onBad(ofHost(error, 'that is here', fail));
    }

    const hostPath = (): string | undefined => form?.paths.find((one) => one === path.slice(1).join('/'));

    return {
        hosts,
        root: (): string | undefined => root,
        warning: (): string | null => reader?.warning?.() ?? null,
        isComplete: (): boolean => root !== undefined && path.length === 0,

        open(name: string, attributes: Attributes): void {
            if (path.length === 0) {
                begin(name);
            }

            if (path.push(name) > MAX_DEPTH) {
                throw fail(`elements are nested deeper than ${MAX_DEPTH}`);
            }

            if (host !== null) {
                try {
                    host.open(name, attributes);
                } catch (error) {
                    refuse(error);
                }
                return;
            }

            const at = hostPath();
            if (at === undefined) {
                reader?.beside?.(name, attributes);
            } else {
                hostStart = position();
                hostDepth = path.length;
                host = reader?.host(attributes, at) ?? null;
            }
        },

        text: (text: string): void => host?.text?.(text),

        close(): void {
            if (host !== null && path.length === hostDepth) {
                const scanned = host.finish();
                host = null;
                try {
                    hosts.push(...(scanned === null ? [] : [normaliseHost(scanned)]));
                } catch (error) {
                    onBad(ofHost(error, 'that ends here', fail));
                }
            }

            const name = path.pop() ?? '';
            try {
                host?.close?.(name);
            } catch (error) {
                refuse(error);
            }
        },

        /** So far; 0 outside of hosts. */
        lengthOfHost: (): number => (host === null ? 0 : position() - hostStart),
    };
}

/** The rest of a host that is refused before its end. */
const READ_OVER: HostElements = { open: () => {}, finish: () => null };

/** What is wrong with a host, with its place. @param which Which host it is, as the sentence goes on. */
function ofHost(error: unknown, which: string, fail: Fail): unknown {
    return error instanceof ScanwireError ? fail(`in the host ${which}, ${error.message}`, error.field) : error;
}

/** The parser writes line and column before its message; only the message is wanted. */
function complaint({ message }: Error): string {
    return `not well-formed XML: ${message.replace(/^\d+:\d+: /, '').replace(/\.$/, '')}`;
}

/** Decodes UTF-8 as it arrives. Most of it is ASCII, which needs no decoder, and half the room. */
function utf8(fail: Fail): (bytes: Uint8Array | null) => string {
    const decoder = new TextDecoder('utf-8', { fatal: true });
    /** Whether the decoder, which looks for a byte order mark, waits for no more bytes. */
    let isIdle = false;
    return (bytes) => {
        if (bytes !== null && isIdle && isAscii(bytes)) {
            return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('latin1');
        }

        try {
            isIdle = (bytes?.at(-1) ?? 0) < 0x80;
            return bytes === null ? decoder.decode() : decoder.decode(bytes, { stream: true });
        } catch {
            throw fail('not UTF-8 text');
        }
    };
}
