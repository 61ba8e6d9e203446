import type { Socket } from 'node:net';

/** Watches whether the other end of a connection reads what it is sent. */
export class ReaderWatch {
    readonly #socket: Socket;
    /** Bytes that waited for it when it last took some, in all and of what is being written. */
    #waited = [0, 0];
    #takenAt: number;

    constructor(socket: Socket, now: number) {
        this.#socket = socket;
        this.#takenAt = now;
    }

    /** For how long it has been seen to take nothing of what waits for it, in milliseconds; 0 while nothing waits. */
    pausedFor(now: number): number {
        const { bytesWritten, writableLength, _handle } = this.#socket as Socket & {
            _handle?: { readonly writeQueueSize?: number } | null;
        };
        // A piece counts as written when all of it is, which may take long: Node's own time-outs look at its queue as well.
        const waits = [bytesWritten - writableLength, _handle?.writeQueueSize ?? 0];
        if (writableLength === 0 || waits.some((bytes, index) => bytes !== this.#waited[index])) {
            this.#waited = waits;
            this.#takenAt = now;
        }
        return now - this.#takenAt;
    }
}
