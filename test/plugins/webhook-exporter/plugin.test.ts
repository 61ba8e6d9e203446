import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import { server as hapiServer } from '@hapi/hapi';
import Joi from 'joi';
import t from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import { timestamp } from '../../../lib/webhooks/index.ts';
import { plugin, type WebhookExporterOptions } from '../../../plugins/webhook-exporter/index.ts';

const options = (): WebhookExporterOptions => ({
    stores: memoryWebhooks(),
    queue: memoryQueue(),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    egress: { allow: ['127.0.0.0/8'] },
});

t.test('delivers an event kind of the host under its vendor name while the server runs', async (t) => {
    const bodies: string[] = [];
    const names: (string | undefined)[] = [];
    const receiver = createServer(async (request, response) => {
        names.push(request.headers['x-acme-event'] as string, request.headers['user-agent']);
        bodies.push(await text(request));
        response.writeHead(204).end();
    }).listen(0, '127.0.0.1');
    await once(receiver, 'listening');
    t.teardown(() => {
        receiver.closeAllConnections();
        receiver.close();
    });

    const server = hapiServer();
    const kinds = [
        { name: 'scan_finished', schema: Joi.object({ timestamp: timestamp().required(), workspace: Joi.string().required() }) },
    ];
    await server.register({ plugin, options: { ...options(), vendor: 'Acme', kinds } satisfies WebhookExporterOptions });
    await server.initialize();
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/` });
    const { test } = await exporters.start(exporter.id);
    t.equal(test.attempt?.outcome?.code, 'delivered');

    const published = await publish('scan_finished', { workspace: 'default', timestamp: '2026-11-21T09:30:00Z' });
    await until(async () => (await deliveries.show(published.deliveries[0] ?? '')).state === 'delivered');
    await server.stop();
    t.equal(bodies[1], '{"timestamp":"2026-11-21T09:30:00.000Z","workspace":"default"}');
    t.strictSame(names, ['test', 'Acme Webhook Data Exporter', 'scan_finished', 'Acme Webhook Data Exporter']);
});

t.test('refuses options that cannot work and names the option', async (t) => {
    const refused = async (change: object, field: string) => {
        const server = hapiServer();
        await t.rejects(server.register({ plugin, options: { ...options(), ...change } }), { code: 'MISCONFIGURED', field }, field);
    };
    await refused({ stores: undefined }, 'stores');
    await refused({ stores: { exporters: {}, deliveries: {} } }, 'stores.exporters');
    await refused({ queue: { add: () => {} } }, 'queue');
    await refused({ keyRing: null }, 'keyRing');
    await refused({ attemptTimeout: 60_000 }, 'attemptTimeout');
    await refused({ connectTimeout: 20_000 }, 'connectTimeout');
    await refused({ collectors: ['a b'] }, 'collectors[0]');
    await refused({ vendor: 'no: such' }, 'vendor');
    await refused({ unknown: 1 }, 'unknown');
    await refused({ kinds: [{ name: 'test', schema: Joi.object() }] }, 'kinds[0].name');
    await refused({ formats: [{ name: 'slack', contentType: 'text/plain', make: () => ({ body: '' }) }] }, 'formats[0].name');
    await refused({ egress: { allow: ['not an entry/'] } }, 'egress.allow[0]');
});

t.test('takes instances of classes as they are', async (t) => {
    class Queue {
        #queue = memoryQueue();
        ready = () => this.#queue.ready();
        add(...args: Parameters<ReturnType<typeof memoryQueue>['add']>) {
            return this.#queue.add(...args);
        }
        work(...args: Parameters<ReturnType<typeof memoryQueue>['work']>) {
            return this.#queue.work(...args);
        }
        close() {
            return this.#queue.close();
        }
    }
    const server = hapiServer();
    await server.register({ plugin, options: { ...options(), queue: new Queue() } });
    await server.initialize();
    await server.stop();
    t.pass('neither start nor stop lost the private state');
});

t.test('publishes many events at once', async (t) => {
    const server = hapiServer();
    await server.register({ plugin, options: options() });
    const { publishAll } = server.plugins['webhook-exporter'];
    t.same(await publishAll([]), []);
    await t.rejects(publishAll([{ kind: 'no such', body: {} }]), { code: 'INVALID_INPUT', field: '[0].kind' });
    await server.stop();
});

t.test('stops the server from starting without the queue', async (t) => {
    const server = hapiServer();
    const queue = { ...memoryQueue(), ready: () => Promise.reject(new Error('no Redis')) };
    await server.register({ plugin, options: { ...options(), queue } });
    await t.rejects(server.initialize(), /no Redis/);
    await server.stop();
});
