import { timeSlice } from '../../clock.ts';
import { ScanwireError } from '../../errors.ts';
import { firstCharacter, peek, startsWith, unpacked } from '../../gunzip.ts';
import { type Line, lineSplitter, linesOf } from '../../line-splitter.ts';
import { isObject } from '../../schema-validation.ts';
import type { HostInput } from '../host.ts';
import { normaliseHost } from '../host-input.ts';
import { type BadLines, badLines } from './bad-lines.ts';
import { readXmlScan } from './read-xml.ts';
import { hostOfLine } from './scanner-line.ts';

const UTF16 = [
    [0xff, 0xfe],
    [0xfe, 0xff],
];
const OPEN_ANGLE = 0x3c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/**
 * Reads a scan of either form, told apart by its first character: the XML of a scanner, or JSON lines of hosts or of findings. Both may be packed
 * with gzip. Memory does not depend on the size, and others get their turn meanwhile.
 *
 * @throws ScanwireError `INVALID_INPUT` with the line and the reason.
 */
export async function* readScan(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const peeked = await peek(unpacked(source), 3);
    // A piece of the source holds hundreds of hosts, and whoever takes them may never wait for anything else.
    const yieldIfDue = timeSlice();
    try {
        for await (const host of readerOf(peeked.head)(peeked)) {
            yield host;
            await yieldIfDue();
        }
    } finally {
        await peeked.return();
    }
}

function readerOf(head: Uint8Array): (source: AsyncIterable<Uint8Array>) => AsyncIterable<HostInput> {
    if (UTF16.some((mark) => startsWith(head, mark))) {
        throw lineError(1, ': this is UTF-16 text; save it as UTF-8');
    }

    switch (firstCharacter(head)) {
        case OPEN_ANGLE:
            return readXmlScan;
        case OPEN_BRACE:
        case OPEN_BRACKET:
            return readHostLines;
        case null:
            throw lineError(1, ': the file is empty');
        default:
            throw lineError(1, ': neither the XML of nmap, Metasploit or Nessus nor JSON lines of hosts or findings');
    }
}

/** Longest line that is read, in bytes without its line break: a host may be as long in XML, and an export writes each on one line. */
export const MAX_HOST_LINE: number = 32 * 1024 * 1024;

/**
 * Reads JSON lines: on every line that is not blank one host in the shape of the API, of which only `address` is required, or one finding of a
 * scanner, as {@link hostOfLine} says. A byte order mark, CR LF and a missing last line break are accepted, and the lines of one JSON list.
 *
 * @throws ScanwireError `INVALID_INPUT` that names the line, the field and the reason, never the value, of each bad line; after the first 100 it
 *     reads no further. Behind a bad line there are no hosts.
 */
export async function* readHostLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const bad = badLines();
    for await (const lines of linesOf(source, lineSplitter(MAX_HOST_LINE))) {
        for (const line of lines) {
            const host = hostOn(line, bad);
            if (host !== null && !bad.found()) {
                yield host;
            }
        }
    }
    bad.end();
}

/** The last line of masscan until 2017, which is no JSON. */
const MASSCAN_END = '{finished: 1}';

/** Null for a line without one; a bad line is noted. */
function hostOn(line: Line, bad: BadLines): HostInput | null {
    try {
        const text = elementOf(textOf(line));
        return text === '' || text === MASSCAN_END ? null : hostOf(text, line.number);
    } catch (error) {
        bad.add(line.number, error);
        return null;
    }
}

/** Without blanks around it; empty for a blank line. */
function textOf({ number, bytes }: Line): string {
    if (bytes === null) {
        throw lineError(number, ' is longer than 32 MiB');
    }

    try {
        return new TextDecoder('utf-8', { fatal: true }).decode(bytes).trim();
    } catch {
        throw lineError(number, ' is not UTF-8 text');
    }
}

/** What brackets and commas of a list are around. A host has neither at its ends. */
function elementOf(text: string): string {
    const from = text.startsWith('[') || text.startsWith(',') ? 1 : 0;
    const to = text.endsWith(']') || text.endsWith(',') ? -1 : undefined;
    return text.slice(from, to).trim();
}

function hostOf(text: string, line: number): HostInput | null {
    const value = parse(text, line);
    if (!isObject(value)) {
        throw lineError(line, ' is not a JSON object');
    }

    try {
        const host = hostOfLine(value);
        return host === null ? null : normaliseHost(host);
    } catch (error) {
        throw error instanceof ScanwireError ? lineError(line, `: ${error.message}`, error.field) : error;
    }
}

/** The parser's own message would quote the text. */
function parse(text: string, line: number): unknown {
    try {
        return JSON.parse(text);
    } catch {
        throw lineError(line, ' is not valid JSON: write one host, a JSON object, on each line');
    }
}

function lineError(line: number, reason: string, field?: string): ScanwireError {
    return new ScanwireError('INVALID_INPUT', `Line ${line}${reason}`, field === undefined ? {} : { field });
}
