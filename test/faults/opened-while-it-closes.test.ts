import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { httpSender, type Message } from '../../lib/webhooks/sending/http-sender.ts';
import { Gate } from '../support/held-receiver.ts';

/*
 * A sender that is opened again while what it sent before its end still goes on: the end is that of the former connections and messages, and
 * of none that came afterwards.
 */

/** A receiver that holds back what is sent to `/held`, with its connections, and a message to a path of it. */
async function receiver(t: Test) {
    const [answer, sockets] = [new Gate(), [] as Socket[]];
    const held = { count: 0 };
    const server = createServer(async (request, response) => {
        request.resume();
        if (request.url === '/held') {
            held.count += 1;
            await answer.passed();
        }
        response.writeHead(204).end();
    });
    server.keepAliveTimeout = 0; // never: only the sender ends a connection
    server.on('connection', (socket) => sockets.push(socket)).listen(0, '127.0.0.1');
    await once(server, 'listening');
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    const { port } = server.address() as AddressInfo;
    const to = (path: string): Message => ({
        exporterId: 'exporter-1',
        url: `http://127.0.0.1:${port}${path}`,
        trust: 'strict',
        headers: [],
        body: Buffer.from('{}'),
    });
    return { answer, sockets, held, to };
}

function senderFor(t: Test) {
    const sender = httpSender({ guard: egressGuard({ allow: ['127.0.0.0/8'] }) });
    t.teardown(() => sender.close());
    return sender;
}

t.test('closes the connections from before, and keeps those made since', async (t) => {
    const { answer, sockets, held, to } = await receiver(t);
    const sender = senderFor(t);
    const before = sender.send(to('/held'));
    await until(() => Promise.resolve(held.count === 1));
    const closing = sender.close();
    sender.open?.();
    t.match(await sender.send(to('/')), { code: 'delivered' });
    answer.open();
    t.match(await before, { code: 'delivered' });
    await closing;

    t.match(await sender.send(to('/')), { code: 'delivered' });
    t.equal(sockets.length, 2, 'over the connection that was kept');
    await until(() => Promise.resolve(sockets[0]?.destroyed === true));
    t.equal(sockets[1]?.destroyed, false);
});

t.test('interrupts what was under way when its time is over, and nothing that came since', async (t) => {
    const { answer, held, to } = await receiver(t);
    const sender = senderFor(t);
    const before = sender.send(to('/held'));
    await until(() => Promise.resolve(held.count === 1));
    const closing = sender.close({ timeout: 1 });
    sender.open?.();
    const since = sender.send(to('/held'));
    t.match(await before, { code: 'interrupted' });
    await closing;
    answer.open();
    t.match(await since, { code: 'delivered' });
});
