import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { now, serve, textOf } from './http.ts';

/**
 * Answers 204 to every POST, after so many milliseconds, and notes when each investigation came first at each path. `GET /?count=N` is
 * answered when so many new ones have come since the last GET: with the pairs of id and time in microseconds, in the order of time,
 * where `&arrivals` asks for them, and with how many came once more. By https where it is told its options of TLS as JSON.
 */
const [after = 0, secure = null] = process.argv.slice(2).map((text) => JSON.parse(text));
const seen = new Set<string>();
let arrivals: (readonly [id: string, at: number])[] = [];
let repeated = 0;
let enough = Number.POSITIVE_INFINITY;

const listener: RequestListener = (request, response) => {
    const answered =
        request.method === 'POST'
            ? take(request)
                  .then(answersNow)
                  .then(() => response.writeHead(204).end())
            : count(request).then((text) => response.end(text));
    answered.catch((error) => response.writeHead(500).end(String(error)));
};
const server = secure === null ? createServer(listener) : createSecureServer(secure, listener);

async function take(request: IncomingMessage): Promise<void> {
    const [, id] = /"investigationId":"([^"]+)"/.exec(await textOf(request)) ?? [];
    if (id === undefined) {
        // The test that the start of an exporter sends.
        return;
    }

    const message = `${request.url} ${id}`;
    if (seen.has(message)) {
        repeated += 1;
        return;
    }

    seen.add(message);
    if (arrivals.push([id, now()]) === enough) {
        server.emit('enough');
    }
}

/** Without a timer where the answer is due at once. */
async function answersNow(): Promise<void> {
    if (after > 0) {
        await sleep(after);
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
