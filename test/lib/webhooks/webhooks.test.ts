import { createHmac, randomBytes } from 'node:crypto';
import { createServer, type IncomingHttpHeaders, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { until } from '../../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { type PoolLike, postgresWebhooks } from '../../../adapters/postgres/index.ts';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import type { DeliveryState } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { WebhookEvent } from '../../../lib/webhooks/observing/emitted-events.ts';
import type { WebhooksOptions } from '../../../lib/webhooks/options.ts';
import { httpSender } from '../../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../../lib/webhooks/webhooks.ts';
import { investigation } from '../../support/investigation.ts';
import { migratedMemory } from '../../support/migrated-database.ts';
import { recordingProcess } from '../../support/recording-process.ts';

interface Received {
    readonly headers: IncomingHttpHeaders;
    readonly body: string;
}

interface Receiver {
    readonly url: string;
    readonly received: Received[];
    answer: (response: ServerResponse) => void;
}

async function receiver(t: Test): Promise<Receiver> {
    const self: Receiver & { url: string } = { url: '', received: [], answer: (response) => response.writeHead(204).end() };
    const server: Server = createServer((request, response) => {
        let body = '';
        request.setEncoding('utf8').on('data', (chunk) => {
            body += chunk;
        });
        request.on('end', () => {
            self.received.push({ headers: request.headers, body });
            self.answer(response);
        });
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
        server.closeAllConnections();
        server.close();
    });
    return Object.assign(self, { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook` });
}

interface Setting extends Webhooks {
    readonly errors: Error[];
    advance(milliseconds: number): void;
}

async function setting(t: Test, options: Partial<WebhooksOptions> = {}): Promise<Setting> {
    let offset = 0;
    const errors: Error[] = [];
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const queue = memoryQueue();
    const exporter = webhooks({
        ...memoryWebhooks({ clock: () => new Date(Date.now() + offset) }),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard, attemptTimeout: 2000 }),
        monotonic: () => performance.now() + offset,
        random: () => 0.5,
        onError: (error) => errors.push(error),
        ...options,
    });
    await exporter.start();
    await exporter.work(['default']);
    t.teardown(async () => {
        await exporter.close();
        await queue.close();
    });
    return {
        ...exporter,
        errors,
        advance(milliseconds) {
            offset += milliseconds;
        },
    };
}

/** The deliveries once all of them are in one of these states. */
async function settled(exporter: Webhooks, ...states: DeliveryState[]) {
    let deliveries: Awaited<ReturnType<Webhooks['deliveries']['list']>> = [];
    await until(async () => {
        deliveries = (await exporter.deliveries.list()).filter(({ kind }) => kind !== 'test');
        return deliveries.length > 0 && deliveries.every(({ state }) => states.includes(state));
    });
    return deliveries;
}

t.test('tells of outcomes by a callback, and reports what it throws', async (t) => {
    const told: string[] = [];
    const onEvent = async (event: WebhookEvent): Promise<void> => {
        told.push(event.type === 'event.accepted' ? event.type : `${event.type} ${event.code}`);
        throw new Error('in the callback');
    };
    const { exporters, errors } = await setting(t, { onEvent });
    const { exporter } = await exporters.create({ url: (await receiver(t)).url });
    t.equal((await exporters.test(exporter.id)).attempt?.outcome?.code, 'delivered');
    await until(() => errors.length > 0);
    t.same(told, ['delivery.delivered delivered']);
    t.match(errors, [{ message: 'in the callback' }]);
});

t.test('delivers an event with the headers and the signature of the contract', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made, secret } = await exporter.exporters.create({
        url: to.url,
        name: 'first',
        headers: [['Authorization', 'Bearer abc']],
    });
    t.equal(made.state, 'stopped');
    t.equal(made.type, 'investigation');
    t.notMatch(JSON.stringify(await exporter.exporters.list()), /abc|sealed/i);

    const { test } = await exporter.exporters.start(made.id);
    t.equal(test.attempt?.outcome?.code, 'delivered');
    t.ok((test.attempt?.outcome?.timings.total ?? -1) >= 0);
    const ping = to.received.shift();
    t.match(JSON.parse(ping?.body ?? ''), { webhook_id: made.id, webhook_name: 'first', timestamp: /^\d{4}-.*\.\d{3}Z$/ });
    t.equal(ping?.headers['x-vendor-event'], 'test');

    const { eventId, deliveries } = await exporter.publish('idr_investigation_created', investigation);
    t.match(eventId, /^[0-9a-f-]{36}$/);
    t.equal(deliveries.length, 1);
    await settled(exporter, 'delivered');

    const [message] = to.received;
    t.match(message?.headers, {
        'x-vendor-event': 'idr_investigation_created',
        'x-vendor-signature': createHmac('sha256', secret)
            .update(message?.body ?? '')
            .digest('base64'),
        'content-type': 'application/json; charset=UTF-8',
        'content-length': String(Buffer.byteLength(message?.body ?? '')),
        'user-agent': 'Vendor Webhook Data Exporter',
        authorization: 'Bearer abc',
        host: new URL(to.url).host,
    });
    t.equal(message?.headers['transfer-encoding'], undefined);
});

t.test('retries with the same bytes, waits for its schedule and records every attempt', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);
    to.received.length = 0;

    to.answer = (response) => response.writeHead(503).end();
    const { deliveries } = await exporter.publish('idr_investigation_created', investigation);
    await until(() => to.received.length > 0);
    await settled(exporter, 'pending');
    t.equal(to.received.length, 1);

    to.answer = (response) => response.writeHead(200).end('thank you');
    exporter.advance(5000);
    await settled(exporter, 'delivered');
    t.equal(to.received.length, 2);
    t.equal(to.received[0]?.body, to.received[1]?.body);
    t.equal(to.received[0]?.headers['x-vendor-signature'], to.received[1]?.headers['x-vendor-signature']);

    const { attempts, history } = await exporter.deliveries.show(deliveries[0] ?? '');
    t.equal(attempts, 2);
    t.strictSame(
        history.map(({ number, outcome }) => [number, outcome?.code, outcome?.status]),
        [
            [1, 'server_error', 503],
            [2, 'delivered', 200],
        ],
    );
});

t.test('stops an exporter whose receiver is gone, and holds what it was given before', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);
    to.answer = (response) => response.writeHead(410).end();
    await exporter.publish('idr_investigation_created', investigation);
    const [delivery] = await settled(exporter, 'exhausted');
    t.equal(delivery?.lastCode, 'gone');
    t.match(await exporter.exporters.get(made.id), { state: 'stopped', stopReason: /410/ });
    const [held = ''] = (await exporter.publish('idr_investigation_created', investigation)).deliveries;
    t.match(await exporter.deliveries.show(held), { state: 'held', attempts: 0 });

    to.answer = (response) => response.writeHead(204).end();
    t.same((await exporter.exporters.start(made.id)).held, { count: 1, more: false });
    await exporter.deliveries.replay(delivery?.id ?? '');
    await exporter.deliveries.replay(held);
    await settled(exporter, 'delivered');
    t.same((await exporter.exporters.start(made.id)).held, { count: 0, more: false });
});

t.test('probes a failing receiver one delivery at a time and burns no attempt of the others', async (t) => {
    const to = await receiver(t);
    // No two moments are the same: failures of attempts that began by the last counted one would belong to it.
    let now = Date.now();
    const clock = () => {
        now += 1;
        return new Date(now);
    };
    const exporter = await setting(t, { ...memoryWebhooks({ clock }), monotonic: () => now, breakerAfter: 3, window: 1 });
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);
    to.received.length = 0;
    to.answer = (response) => response.writeHead(500).end();
    await Promise.all(Array.from({ length: 8 }, () => exporter.publish('idr_investigation_created', investigation)));
    await until(async () => (await exporter.exporters.get(made.id)).consecutiveFailures >= 3);
    await settled(exporter, 'pending');
    t.equal(to.received.length, 3);

    to.answer = (response) => response.writeHead(204).end();
    now += 20_000;
    await settled(exporter, 'delivered');
    t.equal((await exporter.exporters.get(made.id)).consecutiveFailures, 0);
});

t.test('sends a test on every change, and does not hold up a stop for it', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    t.equal(to.received.length, 0);
    await exporter.exporters.update(made.id, { name: 'renamed' });
    t.equal(JSON.parse(to.received.at(-1)?.body ?? '').webhook_name, 'renamed');
    await exporter.exporters.start(made.id);
    t.equal(to.received.length, 2);

    to.answer = () => {};
    const stopped = await exporter.exporters.stop(made.id);
    t.equal(stopped.exporter.state, 'stopped');
    t.match(stopped.test, { deliveryId: String, attempt: null });

    to.answer = (response) => response.writeHead(500).end();
    const { attempt, deliveryId } = await exporter.exporters.test(made.id);
    t.match(attempt?.outcome, { code: 'server_error', status: 500, timings: { connect: Number, firstByte: Number } });
    t.equal((await exporter.deliveries.show(deliveryId)).state, 'exhausted');
});

t.test('keeps the rules of export types', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: plain } = await exporter.exporters.create({ url: to.url });
    const { exporter: legacy } = await exporter.exporters.create({ url: to.url, legacy: true });
    t.equal(legacy.type, 'investigation_legacy');
    await exporter.exporters.start(plain.id);
    await exporter.exporters.start(legacy.id);
    const addressed = async (rules?: 'legacy' | 'library') =>
        (await exporter.publish('idr_investigation_created', investigation, rules === undefined ? {} : { rules })).deliveries.length;
    t.equal(await addressed(), 2);
    t.equal(await addressed('legacy'), 2);
    t.equal(await addressed('library'), 1);

    await t.rejects(exporter.exporters.update(plain.id, { type: 'investigation_legacy' }), { code: 'CONFLICT', field: 'type' });
    await t.rejects(exporter.exporters.update(legacy.id, { type: 'investigation' }), { code: 'CONFLICT', field: 'type' });
    await exporter.exporters.update(legacy.id, { type: 'investigation_legacy_and_library' });
    t.equal(await addressed('library'), 2);
    await t.rejects(exporter.exporters.update(legacy.id, { type: 'investigation_legacy' }), { code: 'CONFLICT', field: 'type' });
});

t.test('signs with both secrets during the overlap where the form can carry two', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url, signatures: ['base64', 'standard-webhooks'] });
    await exporter.exporters.update(made.id, { secret: 'another secret' });
    const { headers, body } = to.received.at(-1) as Received;
    t.equal(String(headers['webhook-signature']).split(' ').length, 2);
    t.equal(headers['x-vendor-signature'], createHmac('sha256', 'another secret').update(body).digest('base64'));
    t.equal(await exporter.exporters.secret(made.id), 'another secret');
    exporter.advance(86_400_001);
    await exporter.exporters.test(made.id);
    t.equal(String(to.received.at(-1)?.headers['webhook-signature']).split(' ').length, 1);
});

t.test('signs with the former secret as long as it was said to, and no longer', async (t) => {
    const to = await receiver(t);
    const exporter = await setting(t);
    const { exporter: made } = await exporter.exporters.create({ url: to.url, signatures: ['standard-webhooks'] });
    const signatures = async (): Promise<number> => {
        await exporter.exporters.test(made.id);
        return String(to.received.at(-1)?.headers['webhook-signature']).split(' ').length;
    };
    await exporter.exporters.update(made.id, { secret: 'another secret', overlap: 7_200_000 });
    exporter.advance(7_000_000);
    t.equal(await signatures(), 2);
    exporter.advance(200_001);
    t.equal(await signatures(), 1);
    await exporter.exporters.update(made.id, { secret: 'a third secret', overlap: 0 });
    t.equal(await signatures(), 1);
});

t.test('refuses what is wrong with a clear error and stores nothing', async (t) => {
    const exporter = await setting(t);
    const create = (settings: object) => exporter.exporters.create(settings as never);
    await t.rejects(create({}), { code: 'INVALID_INPUT', field: 'url' });
    await t.rejects(create({ url: 'http://10.0.0.1/' }), { code: 'INVALID_INPUT', field: 'url' });
    await t.rejects(create({ url: 'https://example.com', trust: 'some' }), { code: 'INVALID_INPUT', field: 'trust' });
    await t.rejects(create({ url: 'https://example.com', headers: [['Host', 'a']] }), { code: 'INVALID_INPUT', field: 'headers' });
    await t.rejects(create({ url: 'https://example.com', collector: 'a b' }), { code: 'INVALID_INPUT', field: 'collector' });
    for (const name of ['a\nb', 'a\u009b2Jb', 'a\ud800']) {
        await t.rejects(create({ url: 'https://example.com', name }), {
            code: 'INVALID_INPUT',
            field: 'name',
            message: /control characters/,
        });
    }
    await t.rejects(create({ url: 'https://example.com', secret: '' }), { code: 'INVALID_INPUT', field: 'secret' });
    await t.rejects(create(undefined as never), { code: 'INVALID_INPUT', message: 'Exporter: settings is required' });
    t.strictSame(await exporter.exporters.list(), []);

    const unknown = '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa';
    await t.rejects(exporter.exporters.start(unknown), { code: 'NOT_FOUND' });
    await t.rejects(exporter.exporters.remove(unknown), { code: 'NOT_FOUND' });
    await t.rejects(exporter.deliveries.show(unknown), { code: 'NOT_FOUND' });
    await t.rejects(exporter.deliveries.replay(unknown), { code: 'NOT_FOUND' });
    await t.rejects(exporter.publish('unknown', investigation), { code: 'INVALID_INPUT', field: 'kind' });
    await t.rejects(exporter.publish('test', {}), { code: 'INVALID_INPUT', field: 'kind' });
    await t.rejects(exporter.publish('idr_investigation_created', {} as never), { code: 'INVALID_INPUT', field: 'timestamp' });
    await t.rejects(exporter.publish('idr_investigation_created', investigation, { rules: 'own' as never }), {
        code: 'INVALID_INPUT',
        field: 'rules',
    });
    t.strictSame(await exporter.deliveries.list(), []);
});

t.test('says of an exporter that is removed meanwhile that there is none', async (t) => {
    const stores = memoryWebhooks();
    const { exporters: store } = stores;
    const exporter = await setting(t, {
        ...stores,
        exporters: {
            ...store,
            async update(id, changes) {
                await store.remove(id);
                return await store.update(id, changes);
            },
            async health(id) {
                await store.remove(id);
                return await store.health(id);
            },
        },
    });
    const create = () => exporter.exporters.create({ url: 'http://127.0.0.1/', name: 'first' });
    const [one, two] = [(await create()).exporter, (await create()).exporter];
    await t.rejects(exporter.exporters.show(one.id), { code: 'NOT_FOUND' });
    await t.rejects(exporter.exporters.update(two.id, { name: 'second' }), { code: 'NOT_FOUND' });
    t.same(await exporter.exporters.list(), []);
});

t.test('refuses to list deliveries by what cannot be', async (t) => {
    const { deliveries } = await setting(t);
    for (const query of [
        { limit: 0 },
        { limit: 1.5 },
        { limit: 1001 },
        { limit: 'x' },
        { state: 'lost' },
        { outcome: 'lost' },
        { exporterId: ['a'] },
        { after: 1 },
    ]) {
        const [field] = Object.keys(query);
        await t.rejects(deliveries.list(query as never), { code: 'INVALID_INPUT', field }, JSON.stringify(query));
        await t.rejects(deliveries.attempts.list(query as never), { code: 'INVALID_INPUT', field }, JSON.stringify(query));
    }

    t.strictSame(await deliveries.list({ exporterId: 'nobody', limit: 1000 }), []);
});

t.test('refuses to start with a key ring that does not fit what is sealed, a previous secret too while it is valid', async (t) => {
    const to = await receiver(t);
    let now = Date.now();
    const stores = memoryWebhooks({ clock: () => new Date(now) });
    const [k1, k2] = [randomBytes(32), randomBytes(32)];
    const start = async (current: string, keys: Record<string, Uint8Array>) =>
        setting(t, { ...stores, keyRing: keyRing({ current, keys }) });

    const first = await start('k1', { k1 });
    const { exporter: plain } = await first.exporters.create({ url: to.url });
    const refused = { code: 'MISCONFIGURED', field: 'keyRing' };
    await t.rejects(start('k2', { k2 }), { ...refused, message: /Missing key k1/ });
    await t.rejects(start('k1', { k1: randomBytes(32) }), { ...refused, message: /key k1: the key has other bytes/ });

    const rotated = await start('k2', { k1, k2 });
    await rotated.exporters.update(plain.id, { secret: 'new secret' });
    await t.rejects(start('k2', { k2 }), { ...refused, message: /Missing key k1/ }, 'the previous secret signs for a day');
    now += 86_400_001;
    await start('k2', { k2 });

    const { exporter: withHeaders } = await first.exporters.create({ url: to.url, secret: 'a', headers: [['X-A', 'b']] });
    await rotated.exporters.update(withHeaders.id, { secret: 'b' });
    now += 86_400_001;
    await t.rejects(start('k2', { k2 }), { ...refused, message: new RegExp(`${withHeaders.id}:headers: Missing key k1`) });
});

t.test('refuses to start with a key ring that lacks the key of any sealed column', async (t) => {
    const [k1, k2] = [randomBytes(32), randomBytes(32)];
    const fits = { keyRing: keyRing({ current: 'k2', keys: { k2 } }) };
    const other = keyRing({ current: 'k1', keys: { k1 } });
    const stores = memoryWebhooks();
    const { exporters } = await setting(t, { ...stores, ...fits });
    await exporters.create({ url: 'http://127.0.0.1/' });
    for (const column of ['url', 'sealedSecret', 'sealedHeaders', 'sealedFormatSecret', 'sealedAuthentication']) {
        const list = async () => (await stores.exporters.list()).map((row) => ({ ...row, [column]: other.seal('x', 'y') }));
        const starting = setting(t, { ...stores, ...fits, exporters: { ...stores.exporters, list } });
        await t.rejects(starting, { code: 'MISCONFIGURED', field: 'keyRing', message: /Missing key k1/ }, column);
    }
});

t.test('refuses options that cannot work, with path and rule and never a value', async (t) => {
    const guard = egressGuard({ allow: [] });
    const options = {
        ...memoryWebhooks(),
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
    };
    const wrong: readonly (readonly [option: string, value: unknown, field?: string])[] = [
        ['window', 0],
        ['window', 'SECRET'],
        ['breakerAfter', -3],
        ['breakerAfter', 2 ** 31],
        ['attemptTimeout', 'soon'],
        ['vendor', 'no: such'],
        ['vendor', 7],
        ['kinds', [{ name: 'a' }], 'kinds[0].schema'],
        ['kinds', [{ name: 'test', schema: Joi.object() }], 'kinds[0].name'],
        ['exporters', {}],
        ['deliveries', undefined],
        ['queue', 'SECRET'],
        ['keyRing', 'SECRET'],
        ['guard', {}],
        ['sender', { send: () => {}, close: () => {} }],
        ['sender', { ...options.sender, attemptTimeout: Number.NaN }],
        ['monotonic', 7],
        ['clock', () => new Date(), 'clock'],
        ['stopAfter', 0],
        ['stopAfter', Number.MAX_SAFE_INTEGER],
        ['keepFor', Number.MAX_SAFE_INTEGER],
        ['random', 7],
        ['newId', 7],
        ['sleep', 7],
        ['onError', 7],
        ['unknown', 'SECRET'],
    ];
    for (const [option, value, field = option] of wrong) {
        t.throws(
            () => webhooks({ ...options, [option]: value } as WebhooksOptions),
            { code: 'MISCONFIGURED', field, message: /^(?!.*SECRET)/ },
            option,
        );
    }

    t.throws(() => webhooks(undefined as unknown as WebhooksOptions), { code: 'MISCONFIGURED' });
    const exporter = webhooks(options);
    await t.rejects(exporter.work(['a b']), { code: 'MISCONFIGURED', field: 'collectors[0]' });
    await t.rejects(exporter.work(['default'], { concurrency: 0 }), { code: 'MISCONFIGURED', field: 'concurrency' });
    await exporter.close();
});

t.test('claims for longer than the sender takes for an attempt', async (t) => {
    const to = await receiver(t);
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    for (const attemptTimeout of [100, 30_000]) {
        const stores = memoryWebhooks();
        const claims: number[] = [];
        const exporter = await setting(t, {
            ...stores,
            sender: httpSender({ guard, attemptTimeout }),
            deliveries: {
                ...stores.deliveries,
                claim(requests, session) {
                    claims.push(...requests.map(({ duration }) => duration));
                    return stores.deliveries.claim(requests, session);
                },
            },
        });
        const { exporter: made } = await exporter.exporters.create({ url: to.url });
        await exporter.exporters.start(made.id);
        t.strictSame(claims, [attemptTimeout + 5000]);
    }
});

t.test('waits for the outcome of a test by the time that it is given', async (t) => {
    const to = await receiver(t);
    const slept: number[] = [];
    let passed = 0;
    const sleep = async (milliseconds: number): Promise<void> => {
        slept.push(milliseconds);
        passed += milliseconds;
    };
    const exporter = await setting(t, { sleep, monotonic: () => passed });
    const { exporter: elsewhere } = await exporter.exporters.create({ url: to.url, collector: 'nobody-works-here' });
    t.match(await exporter.exporters.test(elsewhere.id), { deliveryId: String, attempt: null });
    t.equal(
        slept.reduce((sum, milliseconds) => sum + milliseconds),
        7000,
        'as long as a claim holds',
    );
    slept.length = 0;
    t.match(await exporter.exporters.stop(elsewhere.id), { test: { attempt: null } });
    t.equal(
        slept.reduce((sum, milliseconds) => sum + milliseconds),
        200,
    );
});

t.test('refuses a transaction where the store has none', async (t) => {
    const exporter = await setting(t);
    const tx = { query: async () => ({ rows: [], rowCount: 0 }) };
    await t.rejects(exporter.publish('idr_investigation_created', investigation, { tx }), { code: 'MISCONFIGURED', field: 'tx' });
    t.strictSame(await exporter.deliveries.list(), []);
});

t.test('says of a store that shows no contents that a message cannot be shown', async (t) => {
    const stores = memoryWebhooks();
    const { content: _, ...deliveries } = stores.deliveries;
    const { deliveries: shown } = recordingProcess(t, { ...stores, deliveries });
    await t.rejects(shown.message('x'), { code: 'MISCONFIGURED', message: /^Cannot show what a delivery sends/ });
});

t.test('asks no store for several exporters that would answer with all', async (t) => {
    const stores = memoryWebhooks();
    const { filtersByExporters: _, ...deliveries } = stores.deliveries;
    const { deliveries: shown } = recordingProcess(t, { ...stores, deliveries });
    t.same(await shown.list(), []);
    await t.rejects(shown.list({ exporterIds: [] }), { code: 'MISCONFIGURED', field: 'exporterIds' });
    await t.rejects(shown.count({ exporterIds: [] }), { code: 'MISCONFIGURED', field: 'exporterIds' });
});

t.test('lets what a body itself throws through, of one event and of many', async (t) => {
    const { publish, publishAll } = recordingProcess(t, memoryWebhooks());
    const body = {
        get title(): string {
            throw new TypeError('of the application');
        },
    };
    await t.rejects(publish('idr_investigation_created', body as never), { message: 'of the application' });
    await t.rejects(publishAll([{ kind: 'idr_investigation_created', body: body as never }]), { message: 'of the application' });
});

t.test('loses nothing when the queue is down or forgets its jobs', async (t) => {
    const to = await receiver(t);
    const queue = memoryQueue();
    let lost = 0;
    let behaviour: 'up' | 'down' | 'forgetful' = 'up';
    const exporter = await setting(t, {
        queue: {
            ...queue,
            async add(jobs) {
                if (behaviour === 'down') {
                    throw new ScanwireError('UNAVAILABLE', 'the queue is down');
                }

                if (behaviour === 'forgetful') {
                    lost += jobs.length;
                } else {
                    await queue.add(jobs);
                }
            },
        },
    });
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);

    behaviour = 'down';
    await exporter.publish('idr_investigation_created', investigation);
    await until(() => exporter.errors.length > 0);
    t.match(exporter.errors[0], { code: 'UNAVAILABLE' });
    await settled(exporter, 'queued');
    behaviour = 'up';
    await settled(exporter, 'delivered');

    behaviour = 'forgetful';
    await exporter.publish('idr_investigation_created', investigation);
    await settled(exporter, 'queued', 'delivered');
    behaviour = 'up';
    exporter.advance(20_000);
    await settled(exporter, 'delivered');
    t.ok(lost > 0);
});

t.test('takes a claim back from a worker that vanished, and lets its late outcome change nothing but that attempt', async (t) => {
    const to = await receiver(t);
    // Held for longer than it takes to find the claim run out.
    const sender = httpSender({ guard: egressGuard({ allow: ['127.0.0.0/8'] }), attemptTimeout: 10_000 });
    const exporter = await setting(t, { sender });
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);
    await exporter.exporters.stop(made.id);
    await exporter.exporters.start(made.id);

    const heldAnswer = new Promise<ServerResponse>((resolve) => {
        to.answer = resolve;
    });
    const { deliveries } = await exporter.publish('idr_investigation_created', investigation);
    const held = await heldAnswer;
    to.answer = (response) => response.writeHead(204).end();
    exporter.advance(25_000);
    await settled(exporter, 'delivered');
    const before = await exporter.deliveries.show(deliveries[0] ?? '');
    t.match(before.history, [
        { number: 1, outcome: { code: 'interrupted' }, late: false },
        { number: 2, outcome: { code: 'delivered' }, late: false },
    ]);

    held.writeHead(500).end();
    await exporter.close();
    const { history, ...delivery } = await exporter.deliveries.show(deliveries[0] ?? '');
    t.match(history, [
        { number: 1, outcome: { code: 'server_error' }, late: true },
        { number: 2, outcome: { code: 'delivered' }, late: false },
    ]);
    t.match(before, delivery);
});

t.test('on a database', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    let down = false;
    const lost = async (): Promise<never> => {
        throw Object.assign(new Error('gone'), { code: 'ECONNREFUSED' });
    };
    const breakable: PoolLike = {
        query: (...statement) => (down ? lost() : pool.query(...statement)),
        connect: () => (down ? lost() : pool.connect()),
    };
    const queue = memoryQueue();
    const to = await receiver(t);
    const slept: number[] = [];
    const sleep = async (milliseconds: number): Promise<void> => {
        slept.push(milliseconds);
        down = false;
        await new Promise((resolve) => setTimeout(resolve, Math.min(milliseconds, 25)));
    };
    const exporter = await setting(t, { ...postgresWebhooks({ pool: breakable }), queue, sleep });
    const { exporter: made } = await exporter.exporters.create({ url: to.url });
    await exporter.exporters.start(made.id);

    t.test("publishes in the host's transaction", async (t) => {
        const client = await pool.connect();
        for (const end of ['rollback', 'commit']) {
            await client.query('begin');
            const { deliveries } = await exporter.publish('idr_investigation_created', investigation, { tx: client });
            t.equal(deliveries.length, 1);
            await client.query(end);
        }

        client.release();
        t.equal((await settled(exporter, 'delivered')).length, 1);
    });

    t.test('writes an outcome down when the database is back', async (t) => {
        slept.length = 0;
        to.answer = (response) => {
            down = true;
            response.writeHead(204).end();
        };
        const { deliveries } = await exporter.publish('idr_investigation_created', investigation);
        await until(() => slept.length > 0);
        to.answer = (response) => response.writeHead(204).end();
        await settled(exporter, 'delivered');
        t.equal(slept[0], 100);
        t.match(exporter.errors[0], { code: 'UNAVAILABLE' });
        t.match((await exporter.deliveries.show(deliveries[0] ?? '')).history, [
            { number: 1, outcome: { code: 'delivered' }, late: false },
        ]);
    });

    t.test('sends nothing for a job without a delivery', async (t) => {
        const before = to.received.length;
        await queue.add([
            {
                collector: 'default',
                deliveryId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
                attempt: 1,
                singleAttempt: false,
                reservation: null,
            },
        ]);
        await exporter.publish('idr_investigation_created', investigation);
        await settled(exporter, 'delivered');
        t.equal(to.received.length, before + 1);
    });

    t.test('blames a secret that cannot be opened on this side', async (t) => {
        await pool.query("update scanwire.exporters set sealed_secret = 'v1.newer.AAAA'");
        const { deliveries } = await exporter.publish('idr_investigation_created', investigation);
        const shown = () => exporter.deliveries.show(deliveries[0] ?? '');
        await until(async () => typeof (await shown()).history[0]?.outcome?.code === 'string');
        t.match((await shown()).history, [{ outcome: { code: 'interrupted', detail: /^Missing key newer/ } }]);
        t.match(await exporter.exporters.get(made.id), { consecutiveFailures: 0 });
    });
});
