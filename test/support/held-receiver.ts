import { once } from 'node:events';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';
import type { Test } from 'tap';
import { certificate } from './certificates.ts';

/** What waits until it is let go. */
export class Gate {
    readonly #waiting: (() => void)[] = [];
    #isOpen = false;

    open(): void {
        this.#isOpen = true;
        for (const go of this.#waiting.splice(0)) {
            go();
        }
    }

    async passed(): Promise<void> {
        if (!this.#isOpen) {
            await new Promise<void>((resolve) => this.#waiting.push(resolve));
        }
    }
}

export interface HeldReceiver {
    readonly port: number;
    /** Before it no byte of a handshake is answered. */
    readonly handshake: Gate;
    /** Before it no request is. */
    readonly answer: Gate;
}

/** A receiver on loopback that speaks TLS, and takes each step only when the test says so. */
export async function heldReceiver(t: Test): Promise<HeldReceiver> {
    const [handshake, answer] = [new Gate(), new Gate()];
    const behind = createTlsServer(await certificate(), async (request, response) => {
        request.resume();
        await answer.passed();
        response.writeHead(204).end();
    });
    const { port } = await listening(t, behind);
    const before = createServer({ pauseOnConnect: true }, async (socket) => {
        socket.on('error', () => socket.destroy());
        await handshake.passed();
        const way = connect(port, '127.0.0.1');
        way.on('error', () => socket.destroy());
        socket.pipe(way).pipe(socket);
        socket.resume();
    });
    return { port: (await listening(t, before)).port, handshake, answer };
}

async function listening(t: Test, server: Server): Promise<AddressInfo> {
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => server.close());
    return server.address() as AddressInfo;
}
