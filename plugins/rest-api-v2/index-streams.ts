import Boom from '@hapi/boom';
import type { Request } from '@hapi/hapi';
import { ReaderWatch } from '../../lib/protect/reader-watch.ts';
import { retryLater } from './request-limits.ts';

/** How long a client may take nothing of an index that waits for it, and how often that is looked at, in milliseconds. */
const [PATIENCE, LOOK] = [30_000, 5_000];
/** How long a client is told to wait for a place, in milliseconds. */
const RETRY_AFTER = 5_000;

/** The indexes that are being sent. */
export interface Streams {
    /**
     * Takes a place until the answer is sent or its connection gone. A client that takes nothing of it for 30 s loses the connection.
     *
     * @throws Boom 503 with `Retry-After` while all places are taken.
     */
    begin(request: Request): void;
    /** Looks for clients that take nothing, as it does by itself every 5 s. */
    look(): void;
}

/** @param most How many there may be at once. @param now Milliseconds since any moment. */
export function streamsUpTo(most: number, now: () => number = () => performance.now()): Streams {
    const open = new Map<Request, ReaderWatch>();
    let timer: NodeJS.Timeout | undefined;

    function look(): void {
        for (const [{ raw }, taking] of open) {
            if (taking.pausedFor(now()) >= PATIENCE) {
                raw.res.destroy();
            }
        }
    }

    return {
        look,

        begin(request) {
            if (open.size >= most) {
                throw retryLater(Boom.serverUnavailable('Too many indexes are being read; try again later'), RETRY_AFTER);
            }

            const { req, res } = request.raw;
            if (res.closed) {
                return;
            }

            open.set(request, new ReaderWatch(req.socket, now()));
            timer ??= setInterval(look, LOOK).unref();
            const end = (): void => {
                open.delete(request);
                if (open.size === 0) {
                    clearInterval(timer);
                    timer = undefined;
                }
            };
            res.once('close', end);
            // Where there is no connection, as with `server.inject`, nothing is closed.
            res.once('finish', end);
        },
    };
}
