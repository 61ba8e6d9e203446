import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsListener } from 'node:https';
import type { Socket } from 'node:net';

/** What Node calls with each request of a connection, once its head has come. */
type Incoming = (request: IncomingMessage, keepAlive: boolean) => number;

/** With what it says that what follows is none of the parser's. */
const STOP = 2;

/**
 * Ends a connection on which more requests have come in one piece than may be unanswered. Node goes on to make request and response of all the hundreds
 * that are in a piece, whether the connection is destroyed by then or not, and answers some before anybody is told (those without a `Host`,
 * with an unknown `Expect`): 16 KiB took thirty times as long as one request, with nothing else in between.
 */
export function endLongPipelines(listener: Server | TlsListener, max: number): void {
    // Behind Node's own, which gives the connection its parser.
    listener.on('setSecureContext' in listener ? 'secureConnection' : 'connection', (socket: Socket) => {
        // It is not documented: where it is not as it has always been, nothing is changed.
        const { parser } = socket as Socket & { readonly parser?: { onIncoming?: Incoming | null } | null };
        const handOn = parser?.onIncoming;
        if (parser && typeof handOn === 'function') {
            parser.onIncoming = atMost(max, socket, handOn);
        }
    });
}

function atMost(max: number, socket: Socket, handOn: Incoming): Incoming {
    let came = 0;
    const restart = (): void => {
        came = 0;
    };
    return (request, keepAlive) => {
        if (came === 0) {
            process.nextTick(restart);
        }
        came += 1;
        if (came <= max && !socket.destroyed) {
            return handOn(request, keepAlive);
        }

        socket.destroy();
        Object.assign(request, { upgrade: false });
        return STOP;
    };
}
