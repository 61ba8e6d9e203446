import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { textOf } from './contenders/http.ts';

/** A message that came; times in milliseconds, as `performance.now`. */
export interface Arrival {
    /** Of its event. */
    readonly event: string;
    readonly at: number;
}

/** A receiver that notes what it gets, answers when it should, and may refuse. */
export interface Receiver {
    readonly url: string;
    /** In the order in which they came. */
    readonly arrivals: readonly Arrival[];
    /** When each event came first. */
    readonly first: ReadonlyMap<string, number>;
    /** Milliseconds until the answer. */
    answersAfter: number;
    /** Breaks all connections, and refuses others until `accept`. */
    refuse(): Promise<void>;
    accept(): Promise<void>;
}

/** A receiver on a free port of 127.0.0.1. */
export async function notingReceiver(): Promise<Receiver> {
    const arrivals: Arrival[] = [];
    const first = new Map<string, number>();
    const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
        const [, event] = /"investigationId":"([^"]+)"/.exec(await textOf(request)) ?? [];
        // Without an id it is the test that the start of an exporter sends.
        if (event !== undefined) {
            const at = performance.now();
            arrivals.push({ event, at });
            first.set(event, first.get(event) ?? at);
            await sleep(receiver.answersAfter);
        }
        response.writeHead(204).end();
    };
    const server = createServer((request, response) => {
        // A sender that is killed breaks off.
        receive(request, response).catch(() => response.destroy());
    });
    server.keepAliveTimeout = 60_000;
    await listen(server, 0);
    const { port } = server.address() as AddressInfo;

    const receiver: Receiver = {
        url: `http://127.0.0.1:${port}/hook`,
        arrivals,
        first,
        answersAfter: 0,

        async refuse() {
            const closed = once(server, 'close');
            server.close();
            server.closeAllConnections();
            await closed;
        },

        accept: () => listen(server, port),
    };
    return receiver;
}

async function listen(server: Server, port: number): Promise<void> {
    server.listen(port, '127.0.0.1');
    await once(server, 'listening');
}

/** The longest time between two that follow each other, in milliseconds. */
export function longestGap(arrivals: readonly Arrival[]): number {
    return Math.max(0, ...arrivals.slice(1).map(({ at }, index) => at - (arrivals[index] as Arrival).at));
}
