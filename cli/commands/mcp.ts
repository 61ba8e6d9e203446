import { request } from 'node:http';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
import { jsonText } from '../../lib/printable.ts';
import { connectToServer } from '../admin-socket.ts';
import { performing } from '../command.ts';
import { type DataFolder, dataFolder } from '../data-folder.ts';
import { readAll } from '../read-all.ts';

export function define(self: Command): void {
    performing(self, async ({ data }) => {
        const folder = dataFolder(data);
        await relay(folder, process.stdin, (line) => void process.stdout.write(`${line}\n`));
        return undefined;
    });
}

/**
 * Hands each message, a line, to the running server, and each answer back as a line. Whoever can open the socket of the data folder is its
 * operator and needs no key.
 *
 * @throws ScanwireError `UNAVAILABLE` without a server, or with one that does not speak the protocol.
 */
export async function relay(folder: DataFolder, input: NodeJS.ReadableStream, write: (line: string) => void): Promise<void> {
    for await (const line of createInterface({ input })) {
        if (line.trim() !== '') {
            const answer = await exchange(await connected(folder), line);
            if (answer !== '') {
                write(answer);
            }
        }
    }
}

async function connected(folder: DataFolder): Promise<Socket> {
    const server = await connectToServer(folder);
    if (server === null) {
        throw new ScanwireError('UNAVAILABLE', `No server runs on ${folder.path}: start scanwire serve, or name the folder with --data`, {
            field: 'data',
        });
    }

    return server;
}

const MAX_ANSWER = 64 * 1024 * 1024;
const NO_PROTOCOL = 'The server has no MCP: npm install @modelcontextprotocol/sdk where it runs, and start it again';

const TOO_LONG = 'The answer is too long';

/** Of JSON-RPC. */
const [PARSE_ERROR, INVALID_REQUEST, INTERNAL_ERROR] = [-32_700, -32_600, -32_603];

/** What the server answered, in the words of the protocol: what it refuses before it knows the protocol comes in its own. Nothing for what asks for no answer. */
export function spoken(message: string, status: number, answer: string): string {
    const told = jsonOf(answer);
    if (answer === '' ? status < 300 : isMessage(told)) {
        return answer;
    }

    const asked = jsonOf(message);
    const code = asked === undefined ? PARSE_ERROR : status < 500 && status >= 400 ? INVALID_REQUEST : INTERNAL_ERROR;
    const error = { code, message: asked === undefined ? 'Parse error: a message is one line of JSON' : reasonIn(told, answer, status) };
    const refusals = [asked].flat().flatMap((one) => (isTold(one) ? [] : [{ jsonrpc: '2.0', id: idOf(one), error }]));
    return refusals.length === 0 ? '' : jsonText(Array.isArray(asked) ? refusals : refusals[0]);
}

/** Undefined for what is none. */
function jsonOf(text: string): unknown {
    try {
        return JSON.parse(text);
    } catch {
        return undefined;
    }
}

type Fields = Readonly<Record<string, unknown>>;

const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

const isMessage = (value: unknown): boolean => [value].flat().every((one) => fieldsOf(one).jsonrpc === '2.0');

/** Whether it is a notification. */
const isTold = (value: unknown): boolean => typeof fieldsOf(value).method === 'string' && !('id' in fieldsOf(value));

function idOf(value: unknown): string | number | null {
    const { id } = fieldsOf(value);
    return typeof id === 'string' || typeof id === 'number' ? id : null;
}

/** Why it was refused: routes say it in `error.message`, hapi in `message`. */
function reasonIn(told: unknown, answer: string, status: number): string {
    const { message, error } = fieldsOf(told);
    const reason = fieldsOf(error).message ?? message;
    return typeof reason === 'string' ? reason : answer === TOO_LONG ? TOO_LONG : `The server answered ${status}`;
}

function exchange(server: Socket, message: string): Promise<string> {
    const headers = {
        'content-type': 'application/json',
        'content-length': Buffer.byteLength(message),
        accept: 'application/json, text/event-stream',
    };
    return new Promise((resolve, reject) => {
        const outgoing = request({ createConnection: () => server, method: 'POST', path: '/mcp', headers }, (incoming) => {
            if (incoming.statusCode === 404) {
                outgoing.destroy();
                reject(new ScanwireError('UNAVAILABLE', NO_PROTOCOL));
                return;
            }
            readAll(incoming, MAX_ANSWER).then((bytes) => {
                resolve(spoken(message, incoming.statusCode ?? 0, bytes === null ? TOO_LONG : String(bytes)));
                outgoing.destroy();
            }, reject);
        });
        outgoing.on('error', (cause) => reject(new ScanwireError('UNAVAILABLE', 'The server broke off', { cause })));
        outgoing.end(message);
    });
}
