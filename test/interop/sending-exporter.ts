import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import { join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import type { Test } from 'tap';
import { present, until } from '../../adapters/contract/assertions.ts';
import { ask } from '../../cli/admin-client.ts';
import type { SignatureForm } from '../../lib/webhooks/setting-values.ts';
import type { Input, OperationName, Output } from '../../plugins/admin-console/operations.ts';
import { fixture, serveIn, usedDataOf } from '../support/served.ts';

export const SECRET = 'what two of us know: ü€😀';
export const TITLE = 'Größe – "quoted" \u2028 😀';
export const KIND = 'idr_investigation_created';
const EVENT = { ...JSON.parse(readFileSync(fixture('events/investigation.json'), 'utf8')), title: TITLE };

/** What a receiver says. */
export interface Answer {
    readonly status: number;
    readonly text: string;
}

/** A message as it was sent, and what came of it. */
export interface Sent extends Answer {
    readonly headers: IncomingHttpHeaders;
    readonly body: Buffer;
}

/** A served exporter. */
export interface SendingExporter {
    /** Sends an investigation in a format, signed in these forms with {@link SECRET}; to the product where there is one, else it is taken with 204. */
    delivered(t: Test, forms: readonly SignatureForm[], product?: string, format?: string): Promise<Sent>;
}

/** Serves until the end of the test. */
export async function sendingExporter(t: Test): Promise<SendingExporter> {
    const data = await usedDataOf(t);
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: '127.0.0.1' }, data);
    const perform = <Name extends OperationName>(name: Name, input: Input<Name>): Promise<Output<Name>> =>
        ask(connect(join(data, 'scanwire.sock')), name, input);

    return {
        async delivered(t, forms, product, format = 'native') {
            const came: Sent[] = [];
            const onItsWay = createServer(async (incoming, response) => {
                const body = await buffer(incoming);
                const answer = product === undefined ? { status: 204, text: '' } : await post(product, incoming.headers, body);
                came.push({ headers: incoming.headers, body, ...answer });
                response.writeHead(answer.status).end();
            }).listen(0, '127.0.0.1');
            await once(onItsWay, 'listening');
            t.teardown(() => {
                onItsWay.closeAllConnections();
                onItsWay.close();
            });

            const url = `http://127.0.0.1:${(onItsWay.address() as AddressInfo).port}/`;
            const { id } = await perform('createExporter', { url, secret: SECRET, signatures: forms, format });
            await perform('startExporter', { id });
            await perform('publishEvent', { kind: KIND, body: EVENT });
            const last = (): Sent | undefined => came.find(({ headers }) => headers['x-vendor-event'] === KIND);
            await until(() => last() !== undefined);
            await perform('removeExporter', { id });
            return present(last());
        },
    };
}

const CONNECTION_HEADERS = ['host', 'connection', 'content-length', 'accept-encoding'];

/** Passes a message on. */
export async function post(url: string, headers: IncomingHttpHeaders, body: Buffer): Promise<Answer> {
    const passedOn = Object.fromEntries(Object.entries(headers).filter(([name]) => !CONNECTION_HEADERS.includes(name)));
    const outgoing = request(url, { method: 'POST', agent: false, headers: { ...passedOn, 'content-length': body.byteLength } });
    outgoing.end(body);
    const [response] = (await once(outgoing, 'response')) as [IncomingMessage];
    return { status: response.statusCode ?? 0, text: (await buffer(response)).toString() };
}

/** The same with one letter another, which is JSON all the same. */
export function changed(body: Buffer): Buffer {
    const other = Buffer.from(body.toString().replace('Lisbon', 'Lisboa'));
    assert.notDeepEqual(other, body);
    return other;
}

/** Whether somebody listens there. */
export async function answers(port: number): Promise<boolean> {
    const socket = connect(port, '127.0.0.1');
    try {
        await once(socket, 'connect');
        return true;
    } catch {
        return false;
    } finally {
        socket.destroy();
    }
}
