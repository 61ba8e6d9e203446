import { once } from 'node:events';
import { createServer } from 'node:https';
import type { AddressInfo } from 'node:net';
import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { authority, certificate } from '../support/certificates.ts';
import { fixture, json, serveIn, usedDataOf } from '../support/served.ts';

interface Shown {
    readonly state: string;
    readonly history: readonly { readonly timings: { readonly tls: number | null }; readonly certificate?: unknown }[];
}

t.test('shows the certificate of each attempt from the store, over a kept connection too', async (t) => {
    const root = await authority('Private root');
    const { key, cert } = await certificate({ authority: root, to: '2098-07-06T05:04:03Z' });
    let connections = 0;
    const receiver = createServer({ key, cert }, (incoming, answer) => incoming.resume().on('end', () => answer.writeHead(204).end()));
    receiver.on('secureConnection', () => {
        connections += 1;
    });
    receiver.listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    t.teardown(() => receiver.close().closeAllConnections());
    const { port } = receiver.address() as AddressInfo;

    const data = await usedDataOf(t);
    await serveIn(t, { SCANWIRE_EGRESS_ALLOW: `127.0.0.1:${port}` }, data);
    await json(data, 'exporters', 'create', '--url', `https://127.0.0.1:${port}/`, '--trust', 'all', '--start');
    const ofEach: Shown[] = [];
    for (let number = 0; number < 2; number += 1) {
        const { deliveries } = await json<{ deliveries: string[] }>(
            data,
            'events',
            'publish',
            'idr_investigation_created',
            fixture('events/investigation.json'),
        );
        const [id = ''] = deliveries;
        const show = () => json<Shown>(data, 'deliveries', 'show', id);
        await until(async () => (await show()).state === 'delivered');
        ofEach.push(await show());
    }
    const expected = { issuer: 'CN=Private root', expiresAt: '2098-07-06T05:04:03.000Z' };
    for (const { history } of ofEach) {
        t.match(history, [{ certificate: expected }]);
    }
    t.equal(ofEach[1]?.history[0]?.timings.tls, null, 'the second had nothing to secure');
    t.equal(connections, 2, 'one of the test, and one of both');
});
