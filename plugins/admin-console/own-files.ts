import type { Request, Server } from '@hapi/hapi';

/** By their listeners, which the servers that plugins and requests have are the same by. */
const opened = new WeakSet<object>();

/**
 * Says of a server that nobody but whoever runs it can send it anything: what is sent are files of theirs. That of the data folder only. That a server
 * listens on a socket of the system says nothing of who writes into it: a proxy may, for all the world.
 */
export function openToOwnerOnly({ listener }: Server): void {
    opened.add(listener);
}

/** Whether a request sends files of whoever runs the server. */
export function sendsOwnFiles({ server }: Request): boolean {
    return opened.has(server.listener);
}
