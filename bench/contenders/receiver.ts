import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import { now, serve, textOf } from './http.ts';

/**
 * Answers 204 to every POST and notes when each investigation came first. `GET /?count=N` is answered when so many new ones have come
 * since the last GET: with the pairs of id and time in microseconds where `&arrivals` asks for them, and with how many came once more.
 */
const seen = new Set<string>();
let arrivals: (readonly [id: string, at: number])[] = [];
let repeated = 0;
let enough = Number.POSITIVE_INFINITY;

const server = createServer((request, response) => {
    const answered =
        request.method === 'POST'
            ? take(request).then(() => response.writeHead(204).end())
            : count(request).then((text) => response.end(text));
    answered.catch((error) => response.writeHead(500).end(String(error)));
});

async function take(request: IncomingMessage): Promise<void> {
    const [, id] = /"investigationId":"([^"]+)"/.exec(await textOf(request)) ?? [];
    if (id === undefined) {
        // The test that the start of an exporter sends.
        return;
    }

    if (seen.has(id)) {
        repeated += 1;
        return;
    }

    seen.add(id);
    if (arrivals.push([id, now()]) === enough) {
        server.emit('enough');
    }
}

async function count(request: IncomingMessage): Promise<string> {
    const { searchParams } = new URL(request.url ?? '', 'http://receiver');
    enough = Number(searchParams.get('count'));
    if (arrivals.length < enough) {
        await once(server, 'enough');
    }

    const counted = { count: arrivals.length, repeated, arrivals: searchParams.has('arrivals') ? arrivals : [] };
    arrivals = [];
    repeated = 0;
    enough = Number.POSITIVE_INFINITY;
    return JSON.stringify(counted);
}

serve(server);
