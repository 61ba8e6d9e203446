import type { Trust } from './exporter.ts';
import type { Outcome } from './outcome.ts';

/** One POST, ready to go. */
export interface Message {
    /** Connections are kept apart by exporter and by what is here: a change of exporter, URL or trust never reuses an old socket. */
    readonly exporterId: string;
    readonly url: string;
    readonly trust: Trust;
    /** All headers in order, but `Host`, `Connection`, `Accept-Encoding` and `Content-Length`, which are the sender's. */
    readonly headers: readonly (readonly [name: string, value: string])[];
    readonly body: Uint8Array;
    /** Goes over a connection of its own, made for it: a `test` shows whether the receiver can be reached now, and each time that it takes. */
    readonly fresh?: boolean;
}

/** Sends messages through the egress guard. Never rejects: whatever happens is an {@link Outcome}. */
export interface Sender {
    send(message: Message): Promise<Outcome>;
    /** Ends idle connections; messages under way finish first. */
    close(): Promise<void>;
}
