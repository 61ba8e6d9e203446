import { once } from 'node:events';
import http, { type ClientRequest, type IncomingMessage } from 'node:http';
import Hapi, { type Server } from '@hapi/hapi';
import type { Test } from 'tap';
import { memoryRecords } from '../../../adapters/memory/records.ts';
import type { HttpsRecord } from '../../../lib/records/index.ts';
import { type HttpsRecordSchemaOptions, plugin } from '../../../plugins/https-record-schema/index.ts';

export const RECORDS = '/https-record-schema/records';
export const ndjson = { 'content-type': 'application/x-ndjson' };

/** A line of an answer. */
export type Told = Readonly<Record<string, unknown>>;

export function record(fields: Partial<HttpsRecord> = {}): HttpsRecord {
    return { data: 'SFRUUA==', host: 'www.example.com', ip: '192.0.2.7', port: 443, ...fields };
}

export function linesOf(records: readonly object[]): string {
    return records.map((one) => `${JSON.stringify(one)}\n`).join('');
}

/** A server that listens, with records in memory unless the options say otherwise. */
export async function started(t: Test, options: HttpsRecordSchemaOptions = {}): Promise<Server> {
    const server = Hapi.server({ host: '127.0.0.1', port: 0, debug: false });
    await server.register({ plugin, options: { records: memoryRecords(), auth: false, ...options } });
    await server.start();
    t.teardown(() => server.stop({ timeout: 100 }));
    return server;
}

/** A request whose body is still to be written. */
export function posting(server: Server, query = '', options: http.RequestOptions = {}): ClientRequest {
    const headers = { ...ndjson, ...(options.headers as object) };
    return http.request(`${server.info.uri}${RECORDS}${query}`, { method: 'POST', agent: false, ...options, headers });
}

export async function answerTo(sent: ClientRequest): Promise<IncomingMessage> {
    const [message] = (await once(sent, 'response')) as [IncomingMessage];
    return message;
}

/** The lines of an answer as they come; fails where the answer is cut. */
export async function* linesTold(message: IncomingMessage): AsyncGenerator<Told, void, undefined> {
    let rest = '';
    for await (const chunk of message.setEncoding('utf8')) {
        const lines = `${rest}${chunk}`.split('\n');
        rest = lines.pop() ?? '';
        for (const line of lines) {
            yield JSON.parse(line) as Told;
        }
    }
}

export async function allTold(sent: ClientRequest): Promise<readonly Told[]> {
    const told: Told[] = [];
    for await (const line of linesTold(await answerTo(sent))) {
        told.push(line);
    }

    return told;
}

/** Sends a whole body, and resolves with the lines of the answer. */
export async function imported(server: Server, body: string | Buffer, query = '', headers: object = {}): Promise<readonly Told[]> {
    const { payload } = await server.inject({
        method: 'POST',
        url: `${RECORDS}${query}`,
        headers: { ...ndjson, ...headers },
        payload: body,
    });
    return payload
        .trim()
        .split('\n')
        .map((line) => JSON.parse(line) as Told);
}
