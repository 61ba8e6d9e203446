import { readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Test } from 'tap';

/** Keeps what a client or a receiver has accepted, instead of comparing with it. */
const KEEPING = process.env.KEEP_TRANSCRIPTS === '1';

/**
 * What was said between scanwire and somebody else's program, in a run in which that accepted it. Kept in `transcripts/`, so that scanwire is
 * held to it where the program is not at hand.
 */
export interface Transcript<Exchange> {
    /** Whose program, and of which version. */
    readonly with: string;
    readonly exchanges: readonly Exchange[];
}

/** @throws Error when it is missing. */
export function keptTranscript<Exchange>(name: string): Transcript<Exchange> {
    return JSON.parse(readFileSync(pathOf(name), 'utf8')) as Transcript<Exchange>;
}

/** Of a run with the program itself: equal to the kept one, or kept with `KEEP_TRANSCRIPTS=1`. */
export function holdsTranscript<Exchange>(t: Test, name: string, transcript: Transcript<Exchange>): void {
    if (KEEPING) {
        writeFileSync(pathOf(name), `${JSON.stringify(transcript, null, 4)}\n`);
    }

    t.strictSame(transcript.exchanges, keptTranscript(name).exchanges, `the transcript is the kept one, ${name}`);
}

/** In the sources, also for the compiled test. */
function pathOf(name: string): string {
    return fileURLToPath(new URL(`../../../test/interop/transcripts/${name}.json`, import.meta.url));
}
