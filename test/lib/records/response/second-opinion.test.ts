import { once } from 'node:events';
import { get, type IncomingMessage } from 'node:http';
import { type AddressInfo, createServer } from 'node:net';
import { buffer } from 'node:stream/consumers';
import t from 'tap';
import { bytesOf, parsedHttp } from './parsed-http.ts';
import { sampleResponses } from './sample-responses.ts';

interface Opinion {
    readonly status: number | undefined;
    readonly reason: string | undefined;
    readonly version: string;
    /** Names and values in turn. */
    readonly headers: readonly string[];
    /** Without chunks, with the content coding. */
    readonly body: Buffer;
}

/** What Node's own client makes of the answer, at its most lenient; null when it refuses it. */
async function nodeOpinion(answer: Uint8Array): Promise<Opinion | null> {
    const server = createServer((socket) => {
        socket.on('error', () => {});
        socket.once('data', () => socket.end(answer));
    });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
        const { port } = server.address() as AddressInfo;
        const request = get({ host: '127.0.0.1', port, agent: false, insecureHTTPParser: true });
        // What comes after the body is an error, too.
        request.on('error', () => {});
        const [response] = (await once(request, 'response')) as [IncomingMessage];
        const body = await buffer(response);
        const { statusCode: status, statusMessage: reason, httpVersion: version, rawHeaders: headers } = response;
        return { status, reason: reason?.trimEnd(), version, headers, body };
    } catch {
        return null;
    } finally {
        server.close();
    }
}

function ownOpinion(answer: Uint8Array): Opinion {
    const { status, reason, version, headers, body } = parsedHttp([answer]);
    return { status, reason, version, headers: headers.flatMap(({ rawName, value }) => [rawName, value]), body };
}

const HEAD = 'HTTP/1.1 200 OK\r\n';
const answers: readonly Uint8Array[] = [
    ...sampleResponses.filter((sample) => !sample.toString('latin1').toLowerCase().includes('content-encoding')),
    ...[
        `${HEAD}A: b\r\n\r\nbody`,
        `${HEAD}Set-Cookie: a\r\nX: \r\nset-cookie:b \t\r\nV: \xff\x80\r\nHost: h\r\n\r\n`,
        'HTTP/1.1 200\r\nA: b\r\n\r\nbody',
        'HTTP/1.0 404 Not  Found \r\nContent-Length: 4\r\n\r\nbody',
        `${HEAD}Content-Length: 2\r\n\r\nbody`,
        `${HEAD}Content-Length: 0\r\n\r\n`,
        'HTTP/1.1 204 No Content\r\nA: b\r\n\r\n',
        'HTTP/1.1 304 Not Modified\r\nContent-Length: 10\r\n\r\n',
        'HTTP/1.1 304 Not Modified\r\nContent-Length: 4\r\n\r\nbody',
        `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n${HEAD}A: b\r\n\r\nbody`,
        `${HEAD}Transfer-Encoding: chunked\r\n\r\n2\r\nbo\r\n002;x=y\r\ndy\r\n0\r\nT: u\r\n\r\n`,
        `${HEAD}Transfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n`,
        `${HEAD}A: b,\r\n c\r\nD: e\r\n\r\n`,
        `\r\n${HEAD}A: b\r\n\r\n`,
    ].map((text) => bytesOf(text)),
];

t.test('agrees with the HTTP client of Node where that accepts an answer', async (t) => {
    let accepted = 0;
    for (const answer of answers) {
        const opinion = await nodeOpinion(answer);
        if (opinion !== null) {
            accepted += 1;
            t.same(ownOpinion(answer), opinion, JSON.stringify(Buffer.from(answer).toString('latin1', 0, 200)));
        }
    }

    // Two captures break off, and one is not HTTP.
    t.ok(accepted > answers.length - 5, `${accepted} of ${answers.length} accepted`);
});
