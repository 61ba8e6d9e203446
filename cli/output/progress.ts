import type { Options, Params } from 'cli-progress';
import type { ImportProgress } from '../../lib/inventory/store.ts';
import type { Input } from '../input-file.ts';
import { type Phase, type Told, wholeWork } from './whole-work.ts';

/** Work whose progress is shown. */
export interface Followed {
    /** The bytes of the input: while they flow, it is read. */
    readonly source: AsyncIterable<Uint8Array>;
    /** Takes what comes after the reading; absent where nobody looks on. */
    readonly onProgress?: (progress: ImportProgress) => void;
    /** To be called when all is done, well or badly. */
    end(): void;
}

/** What a line is made of, beside the bar. */
interface Shown {
    readonly phase: string;
    /** What was read, where that is all that is known. */
    readonly read: string | null;
    readonly rate: string;
    /** In seconds. */
    readonly left: number | null;
}

/**
 * One bar on stderr over all that is done with an input, where a person looks on.
 *
 * @param behind The phases that follow the reading, as far as is known before it.
 */
export async function followed({ source, size }: Input, wanted: boolean, behind: readonly Phase[] = []): Promise<Followed> {
    if (!wanted || !process.stderr.isTTY) {
        return { source, end() {} };
    }

    const { default: progress } = await import('cli-progress');
    const { BarFormat, TimeFormat } = progress.Format;
    const format = (options: Options, { progress: share }: Params, { phase, read, rate, left }: Shown): string => {
        const time = left === null ? '' : `  ${TimeFormat(Math.ceil(left), options, 5)} left`;
        return read === null
            ? `${phase} ${BarFormat(share, options)} ${Math.floor(share * 100)}%${rate}${time}`
            : `${phase} ${read} of an unknown size${rate}`;
    };
    // Nothing that would have to be put back: Ctrl-C and a pipe that closes end the process where it is.
    const bar = new progress.SingleBar(
        { format, stream: process.stderr, clearOnComplete: true, linewrap: true },
        progress.Presets.shades_classic,
    );
    const work = wholeWork(behind, () => performance.now());
    let current: Phase | undefined;
    const show = (phase: Phase, told: Told): void => {
        // Of nothing there is no time left to tell.
        if (told.total === 0) {
            return;
        }

        const { share, perSecond, left } = work.at(phase, told);
        const rate = perSecond === null ? '' : `  ${rateText(perSecond, phase === 'reading' ? 'bytes' : 'hosts')}`;
        const shown: Shown = { phase, read: share === null ? `${megabytes(told.done)} MB` : null, rate, left };
        if (current === undefined) {
            bar.start(1, share ?? 0, shown);
        } else if (phase === current) {
            bar.update(share ?? 0, shown);
        } else {
            // However short it was, and is.
            bar.render();
            bar.update(share ?? 0, shown);
            bar.render();
        }
        current = phase;
    };
    return {
        source: watched(source, {
            onRead: (read) => show('reading', { done: read, total: size }),
            onEnd: () => behind.length === 0 && bar.stop(),
        }),
        onProgress: ({ phase, ...told }) => show(phase, told),
        end: () => bar.stop(),
    };
}

/** @param perSecond Since the phase began. */
function rateText(perSecond: number, unit: 'bytes' | 'hosts'): string {
    return unit === 'bytes' ? `${megabytes(perSecond)} MB/s` : `${Math.round(perSecond).toLocaleString('en')} hosts/s`;
}

function megabytes(bytes: number): string {
    return (bytes / 1e6).toFixed(1);
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

/** A chunk is read once the next one is asked for: whoever takes it works on it until then. */
async function* watchedOnce(source: AsyncIterable<Uint8Array>, { onRead, onEnd }: Watcher): AsyncGenerator<Uint8Array, void, undefined> {
    let read = 0;
    onRead(read);
    try {
        for await (const chunk of source) {
            yield chunk;
            read += chunk.byteLength;
            onRead(read);
        }
    } finally {
        onEnd();
    }
}
