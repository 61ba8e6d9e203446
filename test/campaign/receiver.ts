/*
 * A receiver in a process of its own, without any code of scanwire: a server for each exporter. Arguments: the file that it writes
 * an Arrival and an Answer of each POST into, and the names of the exporters. Tells its ports, then takes messages: secrets, and how to behave.
 */
import { createHash, createHmac } from 'node:crypto';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { type Answer, type Arrival, journal, trueTime } from './journal.ts';

/** How a receiver behaves; `good` answers 204 at once. */
export type ReceiverBehaviour = 'good' | 'refuses' | 'resets' | 'hangs' | 'says 410' | 'says 429' | 'says 503' | 'answers after 8 s';

/** What the receiver is told. */
export interface ReceiverOrder {
    readonly exporter: string;
    readonly secret?: string;
    readonly behaviour?: ReceiverBehaviour;
}

interface Endpoint {
    readonly exporter: string;
    readonly server: Server;
    secret: string;
    behaviour: ReceiverBehaviour;
    port: number;
}

const RETRY_AFTER = '3';
const SLOW = 8_000;

const [file = '', ...names] = process.argv.slice(2);
const lines = journal<Arrival | Answer>(file);
const endpoints = new Map<string, Endpoint>();
let posts = 0;

for (const exporter of names) {
    const server = createServer((request, response) => void receive(endpoint, request, response));
    // All of the loopback network, by whose addresses processes are told apart, and nothing of any other.
    server.on('connection', (socket) => socket.remoteAddress?.startsWith('127.') || socket.destroy());
    const endpoint: Endpoint = { exporter, server, secret: '', behaviour: 'good', port: 0 };
    endpoints.set(exporter, endpoint);
    await listen(endpoint);
}
process.send?.(Object.fromEntries([...endpoints].map(([name, { port }]) => [name, port])));

process.on('message', ({ exporter, secret, behaviour }: ReceiverOrder) => {
    const endpoint = endpoints.get(exporter);
    if (endpoint !== undefined) {
        endpoint.secret = secret ?? endpoint.secret;
        behave(endpoint, behaviour ?? endpoint.behaviour);
    }
});
process.on('disconnect', () => process.exit());

async function listen(endpoint: Endpoint): Promise<void> {
    const { server } = endpoint;
    await new Promise<void>((resolve) => server.listen(endpoint.port, '0.0.0.0', resolve));
    endpoint.port = (server.address() as AddressInfo).port;
}

function behave(endpoint: Endpoint, behaviour: ReceiverBehaviour): void {
    const { server } = endpoint;
    endpoint.behaviour = behaviour;
    if (behaviour === 'refuses') {
        server.close();
    } else if (!server.listening) {
        void listen(endpoint);
    }
}

async function receive(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    try {
        for await (const chunk of request) {
            chunks.push(chunk);
        }
    } catch {
        // It never came whole: the sender was killed, or its time was over.
        return;
    }

    posts += 1;
    const post = posts;
    lines.write(arrival(post, endpoint, request, Buffer.concat(chunks)));
    const end = (written: boolean): void =>
        lines.write({ is: 'answer', post, at: trueTime(), status: response.headersSent ? response.statusCode : null, written });
    response.once('close', () => end(response.writableFinished));
    answer(endpoint.behaviour, request, response);
}

function answer(behaviour: ReceiverBehaviour, request: IncomingMessage, response: ServerResponse): void {
    switch (behaviour) {
        case 'good':
        case 'refuses':
            response.writeHead(204).end();
            break;
        case 'resets':
            request.socket.resetAndDestroy();
            break;
        case 'hangs':
            break;
        case 'says 410':
        case 'says 429':
        case 'says 503':
            response.writeHead(Number(behaviour.slice(5)), { 'retry-after': RETRY_AFTER }).end('Later');
            break;
        case 'answers after 8 s':
            setTimeout(() => response.writeHead(204).end(), SLOW);
    }
}

function arrival(post: number, { exporter, secret }: Endpoint, { headers, socket }: IncomingMessage, body: Buffer): Arrival {
    const kind = String(headers['x-vendor-event']);
    const signature = String(headers['x-vendor-signature']);
    return {
        is: 'arrival',
        post,
        at: trueTime(),
        exporter,
        to: socket.localAddress ?? '',
        kind,
        messageId: String(headers['webhook-id']),
        contentType: String(headers['content-type']),
        bodyHash: createHash('sha256').update(body).digest('hex'),
        signature,
        refusal: secret === '' ? null : refusal(secret, signature, headers as Record<string, string>, body),
        publication: kind === 'test' ? '' : titleIn(JSON.parse(body.toString())),
    };
}

/** Of an event as it was published, or in the envelope of CloudEvents. */
function titleIn(body: { readonly title?: string; readonly data?: { readonly title: string } }): string {
    return String(body.data?.title ?? body.title);
}

/** As receivers check: the plain form by HMAC, the other by the library of Standard Webhooks, which also looks at the time. */
function refusal(secret: string, signature: string, headers: Record<string, string>, body: Buffer): string | null {
    if (signature !== createHmac('sha256', secret).update(body).digest('base64')) {
        return 'The signature of the body is wrong';
    }

    try {
        new Webhook(secret).verify(body, headers);
        return null;
    } catch (error) {
        return (error as Error).message;
    }
}
