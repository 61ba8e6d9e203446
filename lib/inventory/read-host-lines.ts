import { type Line, lineSplitter } from '../line-splitter.ts';
import { ScanwireError } from '../scanwire-error.ts';
import type { HostInput } from './host.ts';
import { normaliseHost } from './host-input.ts';

/** Longest line that is read, in bytes without its line break. */
export const HOST_LINE_LIMIT: number = 1024 * 1024;

/**
 * Reads JSON lines: on every line that is not blank one host in the shape of the API, of which only `address` is required.
 * A byte order mark, CR LF and a missing last line break are accepted.
 *
 * @throws ScanwireError `INVALID_INPUT` that names the line, the field and the reason; never the value.
 */
export async function* readHostLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<HostInput, void, undefined> {
    const splitter = lineSplitter(HOST_LINE_LIMIT);
    for await (const chunk of source) {
        yield* hostsOf(splitter.push(chunk));
    }

    yield* hostsOf(splitter.end());
}

function* hostsOf(lines: Iterable<Line>): Generator<HostInput, void, undefined> {
    for (const line of lines) {
        const text = textOf(line);
        if (text !== '') {
            yield hostOf(text, line.number);
        }
    }
}

/** Without blanks around it; empty for a blank line. */
function textOf({ number, bytes }: Line): string {
    if (bytes === null) {
        throw new ScanwireError('INVALID_INPUT', `Line ${number} is longer than 1 MiB`);
    }

    return bytes.byteLength === 0 ? '' : decode(bytes, number).trim();
}

function decode(bytes: Uint8Array, line: number): string {
    try {
        return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
    } catch {
        throw new ScanwireError('INVALID_INPUT', `Line ${line} is not UTF-8 text`);
    }
}

function hostOf(text: string, line: number): HostInput {
    const value = parse(text, line);
    if (Array.isArray(value)) {
        throw new ScanwireError('INVALID_INPUT', `Line ${line} holds a list: write one host, a JSON object, on each line`);
    }

    if (typeof value !== 'object' || value === null) {
        throw new ScanwireError('INVALID_INPUT', `Line ${line} is not a JSON object`);
    }

    try {
        return normaliseHost(value);
    } catch (error) {
        throw atLine(error, line);
    }
}

/** The parser's own message would quote the text. */
function parse(text: string, line: number): unknown {
    try {
        return JSON.parse(text);
    } catch {
        throw new ScanwireError('INVALID_INPUT', `Line ${line} is not valid JSON`);
    }
}

function atLine(error: unknown, line: number): unknown {
    if (!(error instanceof ScanwireError)) {
        return error;
    }

    return new ScanwireError(error.code, `Line ${line}: ${error.message}`, error.field === undefined ? {} : { field: error.field });
}
