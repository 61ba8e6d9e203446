/** What is changed at a listener itself so that its connections can be kept within limits. */
import { AsyncResource } from 'node:async_hooks';
import type { IncomingMessage, Server } from 'node:http';
import type { Server as TlsListener } from 'node:https';
import { Server as NetServer, type Socket } from 'node:net';
import { ScanwireError } from '../errors.ts';

/**
 * Not the server of a framework, which has the listener in it.
 *
 * @throws ScanwireError `MISCONFIGURED`, field `listener`.
 */
export function assertListener(listener: unknown): void {
    if (!(listener instanceof NetServer && 'requestTimeout' in listener)) {
        const message = 'protect: listener must be the listener of node:http or node:https, such as server.listener of hapi';
        throw new ScanwireError('MISCONFIGURED', message, { field: 'listener' });
    }
}

/**
 * Calls back for each connection that its host upgrades, once the host listens for that: with a listener of ours alone, Node would take a
 * request to upgrade for one that is understood.
 */
export function whenUpgraded(listener: Server | TlsListener, act: (socket: Socket) => void): void {
    for (const event of ['upgrade', 'connect']) {
        whenHeard(listener, event, () => listener.prependListener(event, ({ socket }: IncomingMessage) => act(socket)));
    }
}

function whenHeard(listener: Server | TlsListener, event: string, act: () => void): void {
    if (listener.listenerCount(event) > 0) {
        act();
        return;
    }

    const onNew = (added: string): void => {
        if (added === event) {
            listener.off('newListener', onNew);
            act();
        }
    };
    listener.on('newListener', onNew);
}

/**
 * Takes the place of those who listen to an event by now.
 *
 * @param act Is given what lets them know of it, at once or later.
 */
export function standBefore<Args extends readonly unknown[]>(
    listener: Server | TlsListener,
    event: 'connection' | 'request',
    act: (letKnow: () => void, ...args: Args) => void,
): void {
    const others = listener.rawListeners(event);
    const letAllKnow = (args: Args): void => {
        for (const other of others) {
            other.apply(listener, args);
        }
    };
    listener.removeAllListeners(event);
    listener.on(event as string, (...args: unknown[]) => act(() => letAllKnow(args as unknown as Args), ...(args as unknown as Args)));
}

/** What is to be done later, in the context of now. `AsyncResource.bind` does the same, and gives each function a property of its own for it, which costs a flood's memory twice over. */
export function inContext(act: () => void): () => void {
    const context = new AsyncResource('scanwire.protect');
    return () => context.runInAsyncScope(act);
}
