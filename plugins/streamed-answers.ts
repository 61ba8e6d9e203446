import type { Request } from '@hapi/hapi';
import type { InstanceOptions } from './instance.ts';
import { announcing } from './log-and-events.ts';

/** Made once, since making an error records the stack: that would take as long as everything else at the end of an answer. */
const GONE = new DOMException('The connection of the request is gone', 'AbortError');

/**
 * Aborts when the connection of the request is gone, since then nobody waits for the rest of the work. To destroy the stream of the response would not be enough: a generator
 * ends only between two batches, so that a store that is reading the next one would read on.
 */
export function untilClosed(request: Request): AbortSignal {
    return whileOpen(request).signal;
}

/** Options of work for a request. */
export interface WhileOpen {
    /** Made when it is asked for first: a store that has its rows at hand has no need of it. */
    readonly signal: AbortSignal;
    /** Says that the work is over: then the signal aborts no more. */
    done(): void;
}

/** The same for work that may be over long before the connection is gone. */
export function whileOpen({ raw }: Request): WhileOpen {
    return new Open(raw.res);
}

/** A class: an object with a getter of its own takes a request as long as the look-up of its row. */
class Open implements WhileOpen {
    readonly #response: Request['raw']['res'];
    #controller: AbortController | undefined;
    #leave: (() => void) | undefined;

    constructor(response: Request['raw']['res']) {
        this.#response = response;
    }

    get signal(): AbortSignal {
        if (this.#controller === undefined) {
            const controller = new AbortController();
            this.#controller = controller;
            this.#leave = () => controller.abort(GONE);
            this.#response.once('close', this.#leave);
            if (this.#response.closed) {
                this.#leave();
            }
        }
        return this.#controller.signal;
    }

    done(): void {
        if (this.#leave !== undefined) {
            this.#response.removeListener('close', this.#leave);
        }
    }
}

/**
 * Whether the client sees that an answer was cut. Below HTTP/1.1 an answer ends where its connection does, so that lines and CSV that broke off look complete: only what
 * has an end of its own, as JSON and XML have, may stream then.
 */
export function seesCuts({ raw }: Request): boolean {
    return raw.req.httpVersion >= '1.1';
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

/** How a sequence is begun. */
interface Beginning {
    /** Called when a piece that was not there at the beginning cannot be read. */
    readonly cut?: () => void;
    /** Most pieces of a sequence that is {@link Begun.whole}; none is by default. */
    readonly few?: number;
}

/**
 * Reads the first piece before the response begins, and of a few those that are there as well, so that what fails at once becomes a proper
 * error. Later a failure can only break the connection, and must: a cut response never looks complete.
 *
 * Ending `all` ends the sequence even when nothing was taken from it, as with a HEAD request; a generator around the sequence would
 * not do that, since one that never started runs none of its code when it is ended.
 */
export async function withFirst<T>(
    pieces: AsyncGenerator<T, void, undefined>,
    { cut = () => {}, few = 0 }: Beginning = {},
): Promise<Begun<T>> {
    let result: IteratorResult<T, void> | undefined = await pieces.next();
    const begun: (IteratorResult<T, void> | Promise<IteratorResult<T, void>>)[] = [result];
    const first = result.done === true ? undefined : result.value;
    const read: T[] = [];
    while (result !== undefined && result.done !== true) {
        read.push(result.value);
        if (read.length > few) {
            break;
        }

        const next = pieces.next();
        // It is waited for, and may fail, when somebody reads on.
        next.catch(() => {});
        begun.push(next);
        result = await Promise.race([next, afterMicrotasks()]);
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

/** Resolves to nothing behind whatever waits for no more than promises that are resolved already: Node runs its next ticks after all of those. */
function afterMicrotasks(): Promise<undefined> {
    return new Promise((resolve) => void process.nextTick(resolve, undefined));
}
