import { createServer, type IncomingMessage } from 'node:http';
import { serve, textOf } from './http.ts';
import { investigation } from './investigation.ts';

/** How many events are published. */
export interface Burst {
    /** How many publish at once; 50 unless it is given. */
    readonly publishers?: number;
    /** How many events each of them gives in a call; 1 unless it is given. Of scanwire in a host, and the floor. */
    readonly perCall?: number;
}

/** What accepts events and POSTs them to a receiver. */
export interface Sender {
    publish(event: Record<string, unknown>): Promise<void>;
    /** Publishes so many events of its own as fast as it can; 50 at once unless the sender has a better way, or is told another. */
    burst?(count: number, how: Burst): Promise<void>;
    /**
     * Publishes in a transaction that stays open for so many milliseconds more, or nothing in it, and resolves with when it was committed, in
     * microseconds.
     */
    publishInTransaction?(event: Record<string, unknown> | null, open: number): Promise<number>;
    /** Resolves when the outcome of everything that the receiver has got is recorded. */
    recorded(): Promise<void>;
}

/**
 * `POST /` publishes the event in its body, `POST /in-transaction?open=MS` in a transaction, whose end is answered; `POST /burst?count=N`
 * publishes so many as the body says, `GET /recorded` waits. Prints its port.
 */
export function serveSender(sender: Sender): void {
    const answer = async (request: IncomingMessage): Promise<unknown> => {
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://sender');
        if (pathname === '/burst') {
            const count = Number(searchParams.get('count'));
            const how = JSON.parse(await textOf(request)) as Burst;
            await (sender.burst?.(count, how) ?? publishMany(count, () => sender.publish(investigation()), how));
        } else if (pathname === '/recorded') {
            await sender.recorded();
        } else if (pathname === '/in-transaction') {
            return await sender.publishInTransaction?.(JSON.parse(await textOf(request)), Number(searchParams.get('open')));
        } else {
            await sender.publish(JSON.parse(await textOf(request)));
        }
        return '';
    };
    serve(
        createServer((request, response) => {
            answer(request).then(
                (answered) => response.writeHead(202).end(String(answered)),
                (error) => response.writeHead(500).end(String(error)),
            );
        }),
    );
    // A profile is written by a process that ends by itself.
    process.once('SIGTERM', () => process.exit(0));
}

/**
 * Publishes so many events.
 *
 * @param publish Publishes so many of them in one call.
 */
export async function publishMany(
    count: number,
    publish: (count: number) => Promise<void>,
    { publishers = 50, perCall = 1 }: Burst = {},
): Promise<void> {
    let left = count;
    const publisher = async (): Promise<void> => {
        while (left > 0) {
            const taken = Math.min(perCall, left);
            left -= taken;
            await publish(taken);
        }
    };
    await Promise.all(Array.from({ length: publishers }, publisher));
}
