import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';

const LARGE = 2 ** 20;

/** Lengths of the bodies that come, one after the other. */
async function receiver(t: Test) {
    const got: number[] = [];
    const server = createServer((request, response) => {
        request.resume().on('end', () => {
            got.push(Number(request.headers['content-length']));
            response.writeHead(204).end();
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, got };
}

/** An exporter of one kind, over stores of the test, whose rests last until the test ends them. */
async function sending(t: Test, around: (store: DeliveryStore) => Partial<DeliveryStore> = () => ({})) {
    const stores = memoryWebhooks();
    const rests: { readonly milliseconds: number; end(): void }[] = [];
    const queue = memoryQueue();
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const exporter = webhooks({
        ...stores,
        deliveries: { ...stores.deliveries, ...around(stores.deliveries) },
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        maxBodyBytes: 2 * LARGE,
        kinds: [{ name: 'text', schema: Joi.object({ text: Joi.string() }), types: () => ['investigation'] }],
        sleep: (milliseconds) => new Promise((resolve) => rests.push({ milliseconds, end: resolve })),
    });
    await exporter.start();
    await exporter.work(['default']);
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
    });
    const to = await receiver(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    // The outcome of the test event is not waited for: nobody ends that wait.
    void exporter.exporters.start(made.id);
    await until(() => to.got.length === 1);
    to.got.length = 0;
    rests.length = 0;
    return { exporter, got: to.got, rests, accepted: () => stores.deliveries.list({ limit: 10 }).then((found) => found.length - 1) };
}

const textOf = (length: number) => ({ text: 'x'.repeat(length) });

t.test('a large body leaves the process to others before it is judged, stored, and sent', async (t) => {
    const { exporter, got, rests, accepted } = await sending(t);
    const published = exporter.publish('text', textOf(LARGE));
    await until(() => rests.length === 1);
    t.equal(await accepted(), 0, 'it is not stored yet');
    t.equal(rests[0]?.milliseconds, 21);

    await exporter.publish('text', textOf(1));
    await until(() => got.length === 1);
    t.equal(rests.length, 1, 'a small one rests never, and overtakes it');

    rests[0]?.end();
    await until(() => rests.length === 2);
    t.equal(await accepted(), 1, 'it is not stored yet');
    t.equal(rests[1]?.milliseconds, 21);

    rests[1]?.end();
    await published;
    await until(() => rests.length === 3);
    t.equal(got.length, 1, 'it is not sent yet');
    rests[2]?.end();
    await until(() => got.length === 2);
    t.equal(got[1], LARGE + '{"text":""}'.length);
});

t.test('events with an order key are stored in the order of their calls, however large', async (t) => {
    const { exporter, rests, accepted } = await sending(t);
    await Promise.all([exporter.publish('text', textOf(LARGE), { orderKey: 'a' }), exporter.publish('text', textOf(1), { orderKey: 'a' })]);
    t.equal(await accepted(), 2);
    await until(() => rests.length === 1);
    rests[0]?.end();
});

t.test('many that are published together rest as long as their large bodies take', async (t) => {
    const { exporter, rests, accepted } = await sending(t);
    const events = [textOf(LARGE), textOf(10), textOf(LARGE)].map((body) => ({ kind: 'text', body }));
    const published = exporter.publishAll(events);
    await until(() => rests.length === 1);
    t.equal(rests[0]?.milliseconds, 42);
    t.equal(await accepted(), 0);
    rests[0]?.end();
    t.equal((await published).length, 3);
    await until(() => rests.length === 3);
    for (const { end } of rests) {
        end();
    }
});

t.test('a small event does not wait for a statement with a large one', async (t) => {
    const held: (() => void)[] = [];
    const { exporter, got, rests } = await sending(t, (store) => ({
        accept: async (events, options) => {
            if (events.some(({ event }) => event.body.length >= LARGE)) {
                await new Promise<void>((resolve) => held.push(resolve));
            }
            return await store.accept(events, options);
        },
    }));
    const large = Array.from({ length: 3 }, () => exporter.publish('text', textOf(LARGE)));
    for (const _ of ['before they are judged', 'before they are stored']) {
        await until(() => rests.length === 3);
        for (const { end } of rests.splice(0)) {
            end();
        }
    }
    await until(() => held.length > 0);
    await exporter.publish('text', textOf(1));
    await until(() => got.length === 1);
    t.equal(held.length, 1, 'of large ones a single statement is under way');

    held[0]?.();
    await until(() => held.length === 2);
    held[1]?.();
    t.equal((await Promise.all(large)).length, 3);
    await until(() => rests.length === 3);
    for (const { end } of rests) {
        end();
    }
    await until(() => got.length === 4);
});
