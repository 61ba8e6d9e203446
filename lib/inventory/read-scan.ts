import { firstCharacter, openingOf, startsWith } from '../opening.ts';
import { ScanwireError } from '../scanwire-error.ts';
import { unpacked } from '../unpacked.ts';
import type { HostInput } from './host.ts';
import { readHostLines } from './read-host-lines.ts';
import { readNmap } from './read-nmap.ts';

const UTF16 = [
    [0xff, 0xfe],
    [0xfe, 0xff],
];
const OPEN_ANGLE = 0x3c;
const OPEN_BRACE = 0x7b;
const OPEN_BRACKET = 0x5b;

/**
 * Reads a scan of either form, told apart by its first character: the XML of nmap, or JSON lines of hosts. Both may be packed
 * with gzip. Memory does not depend on the size.
 *
 * @throws ScanwireError `INVALID_INPUT` with the line and the reason.
 */
export async function* readScan(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const opening = await openingOf(unpacked(source), 3);
    try {
        yield* readerOf(opening.head)(opening);
    } finally {
        await opening.return();
    }
}

function readerOf(head: Uint8Array): (source: AsyncIterable<Uint8Array>) => AsyncIterable<HostInput> {
    if (UTF16.some((mark) => startsWith(head, mark))) {
        throw new ScanwireError('INVALID_INPUT', 'Line 1: this is UTF-16 text; save it as UTF-8');
    }

    const first = firstCharacter(head);
    if (first === OPEN_ANGLE) {
        return readNmap;
    }

    if (first === OPEN_BRACE) {
        return readHostLines;
    }

    throw new ScanwireError('INVALID_INPUT', `Line 1: ${strange(first)}`);
}

function strange(first: number | null): string {
    if (first === null) {
        return 'the file is empty';
    }

    return first === OPEN_BRACKET
        ? 'this is one JSON list; write one host, a JSON object, on each line'
        : 'neither the XML of nmap nor JSON lines of hosts';
}
