import { timeSlice } from '../../clock.ts';
import { OF_REQUESTS, unpacked } from '../../gunzip.ts';
import { firstCharacter, peek, startsWith } from '../../peek.ts';
import type { HostInput } from '../host.ts';
import { lineError, readHostLines } from './host-lines.ts';
import { readXmlScan, type XmlReading } from './read-xml.ts';

const UTF16 = [
    [0xff, 0xfe],
    [0xfe, 0xff],
];
const OPEN_ANGLE = 0x3c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/** Where a scan comes from. */
export interface ScanSource {
    /** Ends the reading, also that of what was received already. */
    readonly signal?: AbortSignal | undefined;
    /** Whether it is what a client sent, who may expand it less than whoever reads a file of his own. */
    readonly isRequest?: boolean | undefined;
    /** Told, as a sentence, of what a complete scan leaves open; nobody by default. */
    readonly onWarning?: ((message: string) => void) | undefined;
}

/**
 * Reads a scan of either form, told apart by its first character: the XML of a scanner, or JSON lines of hosts or of findings. Both may be packed
 * with gzip. Memory does not depend on the size, and others get their turn meanwhile.
 *
 * @throws ScanwireError `INVALID_INPUT` with the line and the reason; the reason of the signal.
 */
export async function* readScan(
    source: AsyncIterable<Uint8Array>,
    { signal, isRequest = false, onWarning }: ScanSource = {},
): AsyncGenerator<HostInput, void, undefined> {
    const peeked = await peek(unpacked(source, signal, isRequest ? OF_REQUESTS : undefined), 3);
    // A piece of the source holds hundreds of hosts, and whoever takes them may never wait for anything else.
    const yieldIfDue = timeSlice();
    try {
        for await (const host of readerOf(peeked.head)(peeked, { onWarning })) {
            signal?.throwIfAborted();
            yield host;
            await yieldIfDue();
        }
    } finally {
        await peeked.return();
    }
}

function readerOf(head: Uint8Array): (source: AsyncIterable<Uint8Array>, reading: XmlReading) => AsyncIterable<HostInput> {
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
