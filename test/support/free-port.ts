import { randomInt } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:net';

/**
 * Where the system takes no port from by itself: one of those that it hands out could be taken again, by any connection or server of a test that runs
 * meanwhile, before a program that is given it listens there. Above 10,080, the last one that `fetch` and browsers refuse to call.
 */
const [FIRST, END] = [11_000, 32_768];

/** A loopback port that nobody listens on at this moment. */
export async function freePort(): Promise<number> {
    for (;;) {
        const port = randomInt(FIRST, END);
        if (await isFree(port)) {
            return port;
        }
    }
}

async function isFree(port: number): Promise<boolean> {
    const server = createServer().listen(port, '127.0.0.1');
    try {
        await once(server, 'listening');
    } catch (error) {
        if ((error as NodeJS.ErrnoException).code === 'EADDRINUSE') {
            return false;
        }
        throw error;
    }

    server.close();
    await once(server, 'close');
    return true;
}
