import { createServer, type IncomingMessage } from 'node:http';
import { serve, textOf } from './http.ts';
import { investigation } from './investigation.ts';

/** What accepts events and POSTs them to a receiver. */
export interface Sender {
    publish(event: Record<string, unknown>): Promise<void>;
    /** Publishes so many events of its own as fast as it can; 50 at once unless the sender has a better way. */
    burst?(count: number): Promise<void>;
    /** Resolves when the outcome of everything that the receiver has got is recorded. */
    recorded(): Promise<void>;
}

const PUBLISHERS = 50;

/** `POST /` publishes the event in its body, `POST /burst?count=N` so many, `GET /recorded` waits. Prints its port. */
export function serveSender(sender: Sender): void {
    const answer = async (request: IncomingMessage): Promise<void> => {
        const { pathname, searchParams } = new URL(request.url ?? '', 'http://sender');
        if (pathname === '/burst') {
            const count = Number(searchParams.get('count'));
            await (sender.burst?.(count) ?? publishMany(sender, count));
        } else if (pathname === '/recorded') {
            await sender.recorded();
        } else {
            await sender.publish(JSON.parse(await textOf(request)));
        }
    };
    serve(
        createServer((request, response) => {
            answer(request).then(
                () => response.writeHead(202).end(),
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
