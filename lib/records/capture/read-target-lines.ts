import { isUtf8 } from 'node:buffer';
import { type Line, lineSplitter } from '../../line-splitter.ts';
import { ScanwireError } from '../../scanwire-error.ts';
import { type CaptureTarget, MAX_TARGET_LENGTH, parseTarget } from './capture-target.ts';

/** A line of a list of targets, or what is wrong with it. */
export type TargetLine = {
    /** From 1; blank lines and comments count. */
    readonly line: number;
} & Parsed;

type Parsed = { readonly ok: true; readonly target: CaptureTarget } | { readonly ok: false; readonly reason: string };

/** UTF-8 takes at most three bytes for what is one character in JavaScript. */
const MAX_LINE_BYTES = 3 * MAX_TARGET_LENGTH;

/**
 * Reads a list of targets, one in each line in the form of {@link parseTarget}. Blank lines and those that begin with `#` are
 * passed over; a bad line is told and does not end the reading. Holds no more than a line at a time.
 */
export async function* readTargetLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<TargetLine, void, undefined> {
    const splitter = lineSplitter(MAX_LINE_BYTES);
    for await (const chunk of source) {
        yield* targetsOf(splitter.push(chunk));
    }

    yield* targetsOf(splitter.end());
}

function* targetsOf(lines: Iterable<Line>): Generator<TargetLine, void, undefined> {
    for (const { number: line, bytes } of lines) {
        if (bytes === null || !isUtf8(bytes)) {
            yield { line, ok: false, reason: bytes === null ? `is longer than ${MAX_LINE_BYTES} bytes` : 'is not valid UTF-8' };
            continue;
        }

        // a byte order mark counts as white space
        const text = Buffer.from(bytes).toString().trim();
        if (text !== '' && !text.startsWith('#')) {
            yield { line, ...parsed(text) };
        }
    }
}

function parsed(text: string): Parsed {
    try {
        return { ok: true, target: parseTarget(text) };
    } catch (error) {
        if (error instanceof ScanwireError) {
            return { ok: false, reason: error.message.replace(/^target /, '') };
        }

        throw error;
    }
}
