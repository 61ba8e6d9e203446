import t from 'tap';
import { countingReceiver } from '../support/counting-receiver.ts';
import { ended } from '../support/scanwire.ts';
import { fixture, json, serveIn, usedDataOf } from '../support/served.ts';

const ENV = { SCANWIRE_EGRESS_ALLOW: '127.0.0.0/8' };
const KIND = 'idr_investigation_created';

t.test('a server that is stopped waits for a slow receiver, and sends nothing again when it is back', async (t) => {
    const data = await usedDataOf(t);
    const receiver = await countingReceiver(t, (response) => setTimeout(() => response.writeHead(204).end(), 8_000));
    const first = await serveIn(t, ENV, data);
    await json(data, 'exporters', 'create', '--url', receiver.url, '--start');
    const published = await json<{ deliveries: string[] }>(data, 'events', 'publish', KIND, fixture('events/investigation.json'));
    await receiver.received(KIND);
    t.equal(await ended(first.server, 'SIGTERM'), 0);

    const second = await serveIn(t, ENV, data);
    t.match(await json(data, 'deliveries', 'show', published.deliveries[0] ?? ''), {
        state: 'delivered',
        history: [{ number: 1, code: 'delivered' }],
    });
    t.equal(await ended(second.server, 'SIGTERM'), 0);
    t.strictSame(receiver.kinds, ['test', KIND]);
});
