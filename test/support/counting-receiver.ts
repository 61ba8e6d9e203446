import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Test } from 'tap';

/** A receiver that counts what it gets. */
export interface CountingReceiver {
    readonly url: string;
    /** Kinds of the messages that came, in their order. */
    readonly kinds: string[];
    /** Whose messages they are, as `acme` for `X-Acme-Event`. */
    readonly vendors: string[];
    /** Resolves when so many messages of the kind have come. */
    received(kind: string, count?: number): Promise<void>;
}

/** A receiver on a free loopback port that answers a `test` at once, and everything else as `answer` does. */
export async function countingReceiver(t: Test, answer: (response: ServerResponse) => void): Promise<CountingReceiver> {
    const kinds: string[] = [];
    const vendors: string[] = [];
    const listeners = new Set<() => void>();
    const server = createServer(async (request: IncomingMessage, response) => {
        await text(request);
        const [, vendor = '', kind = ''] = /^x-([^-]+)-event: (.*)$/m.exec(headerLines(request)) ?? [];
        kinds.push(kind);
        vendors.push(vendor);
        for (const listener of listeners) {
            listener();
        }
        if (kind === 'test') {
            response.writeHead(204).end();
        } else {
            answer(response);
        }
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });

    return {
        url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
        kinds,
        vendors,
        received: (kind, count = 1) =>
            new Promise((resolve) => {
                const look = (): void => {
                    if (kinds.filter((one) => one === kind).length >= count) {
                        listeners.delete(look);
                        resolve();
                    }
                };
                listeners.add(look);
                look();
            }),
    };
}

function headerLines({ headers }: IncomingMessage): string {
    return Object.entries(headers)
        .map(([name, value]) => `${name}: ${value}`)
        .join('\n');
}
