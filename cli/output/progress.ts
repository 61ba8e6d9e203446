import type { SingleBar } from 'cli-progress';
import type { Input } from '../input.ts';

/** The bytes of the input, with a bar on stderr while they flow, where a person looks on. */
export async function withProgress({ source, size }: Input, wanted: boolean): Promise<AsyncIterable<Uint8Array>> {
    if (!wanted || size === null || !process.stderr.isTTY) {
        return source;
    }

    const { default: progress } = await import('cli-progress');
    // Nothing that would have to be put back: Ctrl-C and a pipe that closes end the process where it is.
    const bar = new progress.SingleBar(
        { format: '{bar} {percentage}%  {eta_formatted} left', stream: process.stderr, clearOnComplete: true, linewrap: true },
        progress.Presets.shades_classic,
    );
    return watched(source, size, bar);
}

async function* watched(source: AsyncIterable<Uint8Array>, size: number, bar: SingleBar): AsyncGenerator<Uint8Array, void, undefined> {
    bar.start(size, 0);
    try {
        for await (const chunk of source) {
            bar.increment(chunk.byteLength);
            yield chunk;
        }
    } finally {
        bar.stop();
    }
}
