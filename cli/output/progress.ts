import type { ImportProgress } from '../../lib/inventory/store.ts';
import type { Input } from '../input-file.ts';

/** Work whose progress is shown. */
export interface Followed {
    /** The bytes of the input: while they flow, it is read. */
    readonly source: AsyncIterable<Uint8Array>;
    /** Takes what comes after the reading; absent where nobody looks on. */
    readonly onProgress?: (progress: ImportProgress) => void;
    /** To be called when all is done, well or badly. */
    end(): void;
}

/** A bar on stderr for each phase of an import, from reading to showing, where a person looks on. */
export async function followed({ source, size }: Input, wanted: boolean): Promise<Followed> {
    if (!wanted || !process.stderr.isTTY) {
        return { source, end() {} };
    }

    const { default: progress } = await import('cli-progress');
    // Nothing that would have to be put back: Ctrl-C and a pipe that closes end the process where it is.
    const bar = new progress.SingleBar(
        {
            format: '{phase} {bar} {percentage}%{rate}  {eta_formatted} left',
            stream: process.stderr,
            clearOnComplete: true,
            linewrap: true,
        },
        progress.Presets.shades_classic,
    );
    const phases = new Set<string>();
    let begun = 0;
    const show = (phase: string, done: number, total: number): void => {
        // Of nothing there is no time left to tell.
        if (total === 0) {
            return;
        }

        if (!phases.has(phase)) {
            phases.add(phase);
            bar.stop();
            begun = performance.now();
            bar.start(total, 0, { phase, rate: '' });
        }

        const seconds = (performance.now() - begun) / 1000;
        bar.update(done, { rate: done === 0 ? '' : `  ${rateText(done / seconds, phase === 'reading' ? 'bytes' : 'hosts')}` });
    };
    return {
        source:
            size === null
                ? source
                : watched(source, {
                      onRead: (read) => show('reading', read, size),
                      onEnd: () => bar.stop(),
                  }),
        onProgress: ({ phase, done, total }) => show(phase, done, total),
        end: () => bar.stop(),
    };
}

/** @param perSecond Since the phase began. */
function rateText(perSecond: number, unit: 'bytes' | 'hosts'): string {
    return unit === 'bytes' ? `${(perSecond / 1e6).toFixed(1)} MB/s` : `${Math.round(perSecond).toLocaleString('en')} hosts/s`;
}

interface Watcher {
    /** @param bytes All until now. */
    onRead(bytes: number): void;
    onEnd(): void;
}

/** One that can be read again can still, without being watched. */
function watched(source: AsyncIterable<Uint8Array>, watcher: Watcher): AsyncIterable<Uint8Array> {
    return Object.assign(watchedOnce(source, watcher), 'again' in source && { again: source.again });
}

async function* watchedOnce(source: AsyncIterable<Uint8Array>, { onRead, onEnd }: Watcher): AsyncGenerator<Uint8Array, void, undefined> {
    let read = 0;
    onRead(read);
    try {
        for await (const chunk of source) {
            read += chunk.byteLength;
            onRead(read);
            yield chunk;
        }
    } finally {
        onEnd();
    }
}
