import type { Request } from '@hapi/hapi';
import type { InstanceOptions } from './instance.ts';
import { announcing } from './log-and-events.ts';

/**
 * Aborts when the connection of the request is gone before its answer was sent, and nobody waits for the rest of the work. Destroying the response's stream alone does not
 * reach a store that waits for its next batch: a generator ends only between two of them.
 */
export function untilClosed({ raw: { res } }: Request): AbortSignal {
    const controller = new AbortController();
    const leave = (): void => controller.abort();
    // `writableFinished` is true as well where an answer ends whose connection is gone.
    res.once('close', leave).once('finish', () => res.off('close', leave));
    return controller.signal;
}

/** Tells the server that the answer to a request broke off, unless it was the client who left. */
export function streamCut(request: Request, plugin: string): () => void {
    return () => {
        const { server, route, path, info, raw } = request;
        if (!raw.res.closed) {
            announcing(server, plugin, route.realm.pluginOptions as InstanceOptions)({ type: 'stream.cut', path, requestId: info.id });
        }
    };
}

/** A sequence whose first piece has been read already. */
export interface Begun<T> {
    /** Undefined when the sequence is empty. */
    readonly first: T | undefined;
    /** Every piece, the first included; to be iterated once. */
    readonly all: AsyncIterable<T>;
    /** The same where no piece has to be waited for, and they are few: an answer that need not be streamed. */
    readonly whole: readonly T[] | null;
}

/**
 * Reads the first piece before the response begins, so that what fails at once becomes a proper error. Later a failure can only break
 * the connection, and must: a cut response never looks complete.
 *
 * Ending `all` ends the sequence even when nothing was taken from it, as with a HEAD request; a generator around the sequence would
 * not do that, since one that never started runs none of its code when it is ended.
 *
 * @param cut Called when a later piece cannot be read.
 * @param few How many pieces are looked for that need not be waited for: a sequence that has no more is {@link Begun.whole}.
 */
export async function withFirst<T>(pieces: AsyncGenerator<T, void, undefined>, cut: () => void = () => {}, few = 0): Promise<Begun<T>> {
    let result: IteratorResult<T, void> | undefined = await pieces.next();
    const begun: (IteratorResult<T, void> | Promise<IteratorResult<T, void>>)[] = [result];
    const first = result.done === true ? undefined : result.value;
    const read: T[] = [];
    while (result !== undefined && result.done !== true && read.push(result.value) <= few) {
        const next = pieces.next();
        // It is waited for, and may fail, when somebody reads on.
        next.catch(() => {});
        begun.push(next);
        result = await Promise.race([next, whatIsReady()]);
    }

    const iterator: AsyncIterator<T, void> = {
        async next() {
            try {
                return await (begun.shift() ?? pieces.next());
            } catch (error) {
                cut();
                throw error;
            }
        },
        return: () => pieces.return(),
    };
    return { first, all: { [Symbol.asyncIterator]: () => iterator }, whole: result?.done === true ? read : null };
}

/** Resolves when everything has been done that nothing has to come for. */
function whatIsReady(): Promise<undefined> {
    return new Promise((resolve) => void process.nextTick(resolve, undefined));
}
