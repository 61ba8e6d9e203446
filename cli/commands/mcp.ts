import { request } from 'node:http';
import type { Socket } from 'node:net';
import { createInterface } from 'node:readline';
import type { Command } from 'commander';
import { ScanwireError } from '../../lib/errors.ts';
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
                resolve(String(bytes ?? ''));
                outgoing.destroy();
            }, reject);
        });
        outgoing.on('error', (cause) => reject(new ScanwireError('UNAVAILABLE', 'The server broke off', { cause })));
        outgoing.end(message);
    });
}
