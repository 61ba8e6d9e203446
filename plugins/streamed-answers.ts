import type { Request } from '@hapi/hapi';
import type { InstanceOptions } from './instance.ts';
import { announcing } from './log-and-events.ts';

/**
 * Aborts when the connection of the request is gone, and nobody waits for the rest of the work. Destroying the response's stream alone does not reach a store that waits for its
 * next batch: a generator ends only between two of them.
 */
export function untilClosed({ raw }: Request): AbortSignal {
    const controller = new AbortController();
    raw.res.once('close', () => controller.abort());
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
}

/**
 * Reads the first piece before the response begins, so that what fails at once becomes a proper error. Later a failure can only break
 * the connection, and must: a cut response never looks complete.
 *
 * Ending `all` ends the sequence even when nothing was taken from it, as with a HEAD request; a generator around the sequence would
 * not do that, since one that never started runs none of its code when it is ended.
 *
 * @param cut Called when a later piece cannot be read.
 */
export async function withFirst<T>(pieces: AsyncGenerator<T, void, undefined>, cut: () => void = () => {}): Promise<Begun<T>> {
    const first = await pieces.next();
    let unread: IteratorResult<T, void> | null = first;
    const iterator: AsyncIterator<T, void> = {
        async next() {
            try {
                const result = unread ?? (await pieces.next());
                unread = null;
                return result;
            } catch (error) {
                cut();
                throw error;
            }
        },
        return: () => pieces.return(),
    };
    return { first: first.done === true ? undefined : first.value, all: { [Symbol.asyncIterator]: () => iterator } };
}
