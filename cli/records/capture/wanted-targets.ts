import { type CaptureTarget, parseTarget, readTargetLines } from '../../../lib/records/index.ts';
import type { CaptureTally } from './capture-report.ts';

export interface WantedTargets {
    /** Of the command line. */
    readonly texts: readonly string[];
    /** A list of more. */
    readonly list: AsyncIterable<Uint8Array> | null;
    /** The address of those that have none of their own. */
    readonly connectTo: string | undefined;
    /** Of targets that need no capture any more. */
    readonly isKnown: (target: CaptureTarget) => boolean;
    readonly tally: CaptureTally;
}

/** The targets to capture, as they are asked for. Bad lines of the list, and what is known, are counted and passed over. */
export async function* wantedTargets({
    texts,
    list,
    connectTo,
    isKnown,
    tally,
}: WantedTargets): AsyncGenerator<CaptureTarget, void, undefined> {
    for await (const given of allOf(texts, list, tally)) {
        const target = connectTo === undefined ? given : { address: connectTo, ...given };
        if (isKnown(target)) {
            tally.skipped();
        } else {
            yield target;
        }
    }
}

async function* allOf(
    texts: readonly string[],
    list: AsyncIterable<Uint8Array> | null,
    tally: CaptureTally,
): AsyncGenerator<CaptureTarget, void, undefined> {
    yield* texts.map(parseTarget);
    for await (const entry of list === null ? [] : readTargetLines(list)) {
        if (entry.ok) {
            yield entry.target;
        } else {
            tally.failed({ target: `line ${entry.line}`, code: 'invalid_target', reason: entry.reason });
        }
    }
}
