import { createServer, type IncomingMessage } from 'node:http';
import { serve, textOf } from './http.ts';
import { investigation } from './investigation.ts';

/** What accepts events and POSTs them to a receiver. */
export interface Sender {
    publish(event: Record<string, unknown>): Promise<void>;
    /** Publishes so many events of its own as fast as it can; 50 at once unless the sender has a better way. */
    burst?(count: number): Promise<void>;
    /** Publishes in a transaction that stays open for so many milliseconds more, and resolves with when it was committed, in microseconds. */
    publishInTransaction?(event: Record<string, unknown>, open: number): Promise<number>;
    /** Resolves when the outcome of everything that the receiver has got is recorded. */
    recorded(): Promise<void>;
}

const PUBLISHERS = 50;

/**
 * `POST /` publishes the event in its body, `POST /in-transaction?open=MS` in a transaction, whose end is answered; `POST /burst?count=N`
 * publishes so many, `GET /recorded` waits. Prints its port.
 */
export function serveSender(sender: Sender): void {
    const answer = async (request: IncomingMessage): Promise<unknown> => {
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://sender');
        if (pathname === '/burst') {
            const count = Number(searchParams.get('count'));
            await (sender.burst?.(count) ?? publishMany(sender, count));
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

async function publishMany({ publish }: Sender, count: number): Promise<void> {
    let left = count;
    const publisher = async (): Promise<void> => {
        while (left > 0) {
            left -= 1;
            await publish(investigation());
        }
    };
    await Promise.all(Array.from({ length: PUBLISHERS }, publisher));
}
