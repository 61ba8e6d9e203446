import { randomBytes, randomUUID } from 'node:crypto';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { DeliveryStore } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { NewExporterSettings } from '../../lib/webhooks/exporters/exporter.ts';
import type { WebhooksOptions } from '../../lib/webhooks/options.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../lib/webhooks/webhooks.ts';

/** The URL of a receiver that takes everything. */
async function receiver(t: Test): Promise<string> {
    const server = createServer((request, response) => request.resume().on('end', () => response.writeHead(204).end()));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

/** The store, and the most bytes of bodies that were claimed at once with no outcome yet. */
function counted(deliveries: DeliveryStore) {
    const held = new Map<string, number>();
    const most = { bytes: 0 };
    const store: DeliveryStore = {
        ...deliveries,
        async claim(requests, session, maxBytes) {
            const claims = await deliveries.claim(requests, session, maxBytes);
            for (const claim of claims) {
                if (claim !== null) {
                    held.set(claim.token, Buffer.byteLength(claim.event.body + (claim.message?.body ?? '')));
                }
            }
            most.bytes = Math.max(
                most.bytes,
                [...held.values()].reduce((sum, bytes) => sum + bytes, 0),
            );
            return claims;
        },
        async recordOutcomes(outcomes, breaker) {
            const recorded = await deliveries.recordOutcomes(outcomes, breaker);
            for (const { token } of outcomes) {
                held.delete(token);
            }
            return recorded;
        },
    };
    return { store, most };
}

async function sending(
    t: Test,
    options: Partial<WebhooksOptions>,
    slowed = (store: DeliveryStore): DeliveryStore => store,
    format: Pick<NewExporterSettings, 'format' | 'template'> = {},
) {
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const queue = memoryQueue();
    const { exporters, deliveries, settings } = memoryWebhooks();
    const { store, most } = counted(deliveries);
    const exporter = webhooks({
        exporters,
        deliveries: slowed(store),
        settings,
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        kinds: [{ name: 'note', schema: Joi.object({ text: Joi.string() }) }],
        ...options,
    });
    await exporter.start();
    await exporter.work(['default']);
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
    });
    const made = await exporter.exporters.create({ url: await receiver(t), ...format });
    await exporter.exporters.start(made.exporter.id);
    return { exporter, most, store };
}

async function assertDelivered(t: Test, { deliveries }: Webhooks, count: number): Promise<void> {
    const delivered = async () => (await deliveries.list()).filter(({ kind, state }) => kind === 'note' && state === 'delivered').length;
    await until(async () => (await delivered()) === count);
    t.equal(await delivered(), count);
}

t.test('a worker holds no more bytes of bodies than it may, and sends all of them', async (t) => {
    const { exporter, most } = await sending(t, { maxBodyBytes: 100_000, maxBytesInFlight: 300_000 });
    await Promise.all(Array.from({ length: 40 }, () => exporter.publish('note', { text: 'x'.repeat(80_000) })));
    await assertDelivered(t, exporter, 40);
    t.ok(most.bytes <= 300_000, `${most.bytes} at most`);
    t.ok(most.bytes >= 160_000, 'several at once where there is room');
});

t.test('a worker holds no bodies of which something else is sent', async (t) => {
    const format = { format: 'template', template: { text: '{{ kind }}' } } as const;
    const { exporter, most } = await sending(t, { maxBodyBytes: 100_000, maxBytesInFlight: 300_000 }, undefined, format);
    await Promise.all(Array.from({ length: 40 }, () => exporter.publish('note', { text: 'x'.repeat(80_000) })));
    await assertDelivered(t, exporter, 40);
    t.ok(most.bytes <= 1_000, `${most.bytes} at most`);
});

t.test('a body that was accepted under another limit, larger than all that a worker may hold, is sent alone', async (t) => {
    const { exporter, most, store } = await sending(t, { maxBodyBytes: 1000, maxBytesInFlight: 1000 });
    const event = { id: randomUUID(), kind: 'note', body: JSON.stringify({ text: 'x'.repeat(5000) }) };
    const small = Array.from({ length: 20 }, () => exporter.publish('note', { text: 'x' }));
    await store.accept([{ event, recipients: { types: ['investigation'] } }]);
    await Promise.all(small);
    await assertDelivered(t, exporter, 21);
    t.equal(most.bytes, 5011, 'with no other');
});

t.test('a claim that is long in coming keeps its room beside others', async (t) => {
    /** Longer than a claim holds up others. */
    const LONG = 2_500;
    const slowed = (store: DeliveryStore): DeliveryStore => {
        const answered = sleep(LONG);
        let claims = 0;
        return {
            ...store,
            async claim(...args) {
                claims += 1;
                const isFirst = claims === 1;
                const claimed = await store.claim(...args);
                await (isFirst ? answered : null);
                return claimed;
            },
            async recordOutcomes(...args) {
                await answered;
                return await store.recordOutcomes(...args);
            },
        };
    };
    const { exporter, most, store } = await sending(t, { maxBodyBytes: 100_000, maxBytesInFlight: 1_000_000 }, slowed);
    const other = await exporter.exporters.create({ url: await receiver(t), name: 'other' });
    await exporter.exporters.start(other.exporter.id);
    const body = JSON.stringify({ text: 'x'.repeat(80_000) });
    await store.accept(
        Array.from({ length: 20 }, () => ({ event: { id: randomUUID(), kind: 'note', body }, recipients: { types: ['investigation'] } })),
    );
    await assertDelivered(t, exporter, 40);
    t.ok(most.bytes <= 1_000_000, `${most.bytes} at most`);
    t.ok(most.bytes >= 600_000, `${most.bytes}: others beside the first`);
});

t.test('a worker that could not hold the largest body is refused', async (t) => {
    await t.rejects(sending(t, { maxBodyBytes: 1001, maxBytesInFlight: 1000 }), { code: 'MISCONFIGURED', field: 'maxBytesInFlight' });
});
