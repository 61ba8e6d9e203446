import { once } from 'node:events';
import { type IncomingHttpHeaders, type IncomingMessage, request as plainRequest, type RequestOptions } from 'node:http';
import { request } from 'node:https';
import { connect } from 'node:net';
import { join } from 'node:path';
import type { Test } from 'tap';
import { ask } from '../../cli/admin-client.ts';
import type { ApiKeyScope } from '../../lib/keys/scopes.ts';
import type { Input, OperationName, Output } from '../../plugins/admin-console/operations.ts';
import { serve } from '../acceptance/support/processes.ts';
import { usedDataOf } from './served.ts';

/** What is asked, by GET unless there is a body. */
export interface Asked {
    readonly method?: string;
    readonly headers?: Readonly<Record<string, string>>;
    /** JSON where it is an object. */
    readonly body?: string | Buffer | object;
}

export interface Answer {
    readonly status: number;
    readonly headers: IncomingHttpHeaders;
    readonly text: string;
}

/** The server of the built command, with the data folder of its operator. */
export interface BuiltServer {
    readonly origin: string;
    readonly port: number;
    readonly pid: number;
    /** What it has written to stdout and stderr. */
    output(): string;
    /** Asks as a stranger does. */
    asked(path: string, asked?: Asked): Promise<Answer>;
    /** Sends to the socket of its operator, where commands ask. */
    askedOfSocket(path: string, asked?: Asked): Promise<Answer>;
    /** Performs an operation as a command of its operator does. */
    admin<Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>>;
    keyWith(...scopes: readonly ApiKeyScope[]): Promise<string>;
}

/** Starts it on a data folder of the test's own. */
export async function builtServer(
    t: Test,
    { args = [], env = {} }: { readonly args?: readonly string[]; readonly env?: Readonly<Record<string, string>> } = {},
): Promise<BuiltServer> {
    const data = await usedDataOf(t);
    const { origin, pid, output } = await serve(t, data, { args, env });
    const socketPath = join(data, 'scanwire.sock');
    const admin: BuiltServer['admin'] = async (name, input) => await ask(connect(socketPath), name, input);
    const port = Number(new URL(origin).port);
    return {
        origin,
        port,
        pid,
        output,
        admin,
        asked: (path, asked) => answered({ port, path, rejectUnauthorized: false, send: request }, asked),
        askedOfSocket: (path, asked) => answered({ socketPath, path, send: plainRequest }, asked),
        keyWith: async (...scopes) => (await admin('createKey', { name: 'test', ...(scopes.length > 0 && { scopes }) })).key,
    };
}

interface Target extends RequestOptions {
    readonly rejectUnauthorized?: boolean;
    readonly send: typeof request;
}

async function answered({ send, ...target }: Target, { method, headers, body }: Asked = {}): Promise<Answer> {
    const isDocument = typeof body === 'object' && !Buffer.isBuffer(body);
    const bytes = isDocument ? JSON.stringify(body) : body;
    const outgoing = send({
        ...target,
        method: method ?? (bytes === undefined ? 'GET' : 'POST'),
        headers: {
            ...(bytes !== undefined && { 'content-length': Buffer.byteLength(bytes) }),
            ...(isDocument && { 'content-type': 'application/json' }),
            ...headers,
        },
        agent: false,
    });
    outgoing.end(bytes);
    const [incoming] = (await once(outgoing, 'response')) as [IncomingMessage];
    const parts = await incoming.setEncoding('utf8').toArray();
    return { status: incoming.statusCode ?? 0, headers: incoming.headers, text: parts.join('') };
}
