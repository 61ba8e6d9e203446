import { once } from 'node:events';
import { createServer, type IncomingMessage, type RequestListener } from 'node:http';
import { createServer as createSecureServer } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { now, serve, textOf } from './http.ts';

/**
 * Answers 204 to every POST, after so many milliseconds, and notes when each investigation came first at each path. `GET /?count=N` is
 * answered when so many new ones have come since the last GET: with the pairs of id and time in microseconds, in the order of time,
 * where `&arrivals` asks for them, and with how many came once more. By https where it is told its options of TLS as JSON. Told to, it
 * answers 500 to the first try of one of so many, and counts none of those before all of these have come again.
 */
const [after = 0, secure = null, oneOf = 0] = process.argv.slice(2).map((text) => JSON.parse(text));
/** Each format has the id in a field or in the link. */
const ID = /"investigationId":"([^"]+)"|\/investigations\/([\w-]+)/;
/** As long as most of what is kept of an answer. */
const REFUSAL = `<!doctype html><title>500 Internal Server Error</title>${'<p>The service is not available.</p>'.repeat(25)}`;
const seen = new Set<string>();
const refused = new Set<string>();
let arrivals: (readonly [id: string, at: number])[] = [];
let repeated = 0;
let enough = Number.POSITIVE_INFINITY;

const listener: RequestListener = (request, response) => {
    const answered =
        request.method === 'POST'
            ? take(request)
                  .then(answersNow)
                  .then((taken) => (taken ? response.writeHead(204).end() : response.writeHead(500).end(REFUSAL)))
            : count(request).then((text) => response.end(text));
    answered.catch((error) => response.writeHead(500).end(String(error)));
};
const server = secure === null ? createServer(listener) : createSecureServer(secure, listener);

/** Resolves with whether it is not refused. */
async function take(request: IncomingMessage): Promise<boolean> {
    const [, field, linked] = ID.exec(await textOf(request)) ?? [];
    const id = field ?? linked;
    if (id === undefined) {
        // The test that the start of an exporter sends.
        return true;
    }

    const message = `${request.url} ${id}`;
    const isNew = !seen.has(message);
    const isRefused = isNew && oneOf > 0 && seen.size % oneOf === 0;
    if (isNew) {
        seen.add(message);
        arrivals.push([id, now()]);
    } else if (!refused.delete(message)) {
        repeated += 1;
    }
    if (isRefused) {
        refused.add(message);
    }
    if (haveCome()) {
        server.emit('enough');
    }
    return !isRefused;
}

function haveCome(): boolean {
    return arrivals.length >= enough && refused.size === 0;
}

/** Without a timer where the answer is due at once. */
async function answersNow<Answer>(answer: Answer): Promise<Answer> {
    if (after > 0) {
        await sleep(after);
    }
    return answer;
}

async function count(request: IncomingMessage): Promise<string> {
    const { searchParams } = new URL(request.url ?? '', 'http://receiver');
    enough = Number(searchParams.get('count'));
    if (!haveCome()) {
        await once(server, 'enough');
    }

    const counted = { count: arrivals.length, repeated, arrivals: searchParams.has('arrivals') ? arrivals : [] };
    arrivals = [];
    repeated = 0;
    enough = Number.POSITIVE_INFINITY;
    return JSON.stringify(counted);
}

serve(server);
