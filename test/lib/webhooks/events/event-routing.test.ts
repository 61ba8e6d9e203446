import { createHmac, randomBytes } from 'node:crypto';
import Joi from 'joi';
import t, { type Test } from 'tap';
import { present, until } from '../../../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { postgresWebhooks, transaction } from '../../../../adapters/postgres/index.ts';
import { egressGuard } from '../../../../lib/egress/guard.ts';
import { keyRing } from '../../../../lib/keys/key-ring.ts';
import type { NewExporterSettings } from '../../../../lib/webhooks/exporters/exporter.ts';
import type { Format } from '../../../../lib/webhooks/formats/format.ts';
import type { WebhookStores } from '../../../../lib/webhooks/options.ts';
import { newProgress, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import type { Message } from '../../../../lib/webhooks/sending/http-sender.ts';
import { FORMATS } from '../../../../lib/webhooks/setting-values.ts';
import { type Webhooks, webhooks } from '../../../../lib/webhooks/webhooks.ts';
import { migratedMemory } from '../../../support/migrated-database.ts';

const KIND = 'idr_investigation_created';

const BODY = {
    timestamp: '2026-11-21T09:30:00.000Z',
    title: 'Suspicious sign-in',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [{ hostname: 'web1', shortname: 'web1', link: 'https://example.com/a/1' }] },
};

/** Of formats whose messages are not sent as the others are. */
const CONTENT_TYPES: Readonly<Record<string, string>> = {
    cloudevents: 'application/cloudevents+json; charset=utf-8',
    'cloudevents-binary': 'application/json; charset=utf-8',
};

const URL = 'https://receiver.example/hook';

interface Setting extends Webhooks {
    /** What was sent, `test` events aside. */
    readonly sent: Message[];
    /** Ids of the exporters that got a new event. */
    receivers(options?: Parameters<Webhooks['publish']>[2]): Promise<readonly string[]>;
    /** An exporter that runs. */
    add(settings?: Partial<NewExporterSettings>): Promise<string>;
}

async function setting(t: Test, stores: WebhookStores = memoryWebhooks(), formats: readonly Format[] = []): Promise<Setting> {
    const sent: Message[] = [];
    const queue = memoryQueue();
    const guard = egressGuard({ allow: [] });
    const self = webhooks({
        ...stores,
        queue,
        formats,
        kinds: ['other', 'another'].map((name) => ({ name, schema: Joi.object({ title: Joi.string() }) })),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: {
            attemptTimeout: 1_000,
            async send(message) {
                if (header(message, 'X-Vendor-Event') !== 'test') {
                    sent.push(message);
                }
                return outcomeOf({ code: 'delivered', status: 204, detail: 'taken', retryAfter: null }, newProgress(), 0);
            },
            async close() {},
        },
    });
    await self.start();
    await self.work(['default']);
    t.teardown(async () => {
        await self.close();
        await queue.close();
    });
    return {
        ...self,
        sent,
        async add(settings = {}) {
            const { exporter } = await self.exporters.create({ url: URL, ...settings });
            await self.exporters.start(exporter.id);
            return exporter.id;
        },
        async receivers(options) {
            const { deliveries } = await self.publish(KIND, BODY, options);
            const rows = await Promise.all(deliveries.map((id) => self.deliveries.show(id)));
            return rows.map(({ exporterId }) => exporterId).sort();
        },
    };
}

function header({ headers }: Message, wanted: string): string | undefined {
    return headers.find(([name]) => name === wanted)?.[1];
}

t.test('gives events of an owner to his exporters and to those of the deployment', async (t) => {
    const { add, receivers } = await setting(t);
    const [all, one, other] = [await add(), await add({ owner: 'one' }), await add({ owner: 'other' })];
    t.same(await receivers(), [all]);
    t.same(await receivers({ owner: 'one' }), [all, one].sort());
    t.same(await receivers({ owner: 'other' }), [all, other].sort());
    t.same(await receivers({ owner: 'One' }), [all]);
});

t.test('gives events to those who named their kind, or the beginning of it', async (t) => {
    const { add, receivers } = await setting(t);
    const [exact, beginning, all] = [await add({ kinds: [KIND] }), await add({ kinds: ['other', 'idr_*'] }), await add({ kinds: ['*'] })];
    await add({ kinds: ['other'] });
    t.same(await receivers(), [exact, beginning, all].sort());
});

t.test('gives events to those whose filter matches the body', async (t) => {
    const { add, receivers } = await setting(t);
    const matching = await add({ filter: { path: 'actors.assets.hostname', op: '=', value: 'web1' } });
    await add({ filter: { path: 'actors.assets.hostname', op: '=', value: 'web2' } });
    t.same(await receivers(), [matching]);
});

t.test('heeds the export type of those who choose', async (t) => {
    const { add, receivers } = await setting(t);
    const legacy = await add({ legacy: true, kinds: ['idr_*'] });
    t.same(await receivers({ rules: 'legacy' }), [legacy]);
    t.same(await receivers({ rules: 'library' }), []);
});

t.test('sees what another process has changed', async (t) => {
    const stores = memoryWebhooks();
    const [one, another] = [await setting(t, stores), await setting(t, stores)];
    const plain = await one.add();
    t.same(await another.receivers(), [plain]);
    const chooser = await one.add({ kinds: ['idr_*'] });
    t.same(await another.receivers(), [plain, chooser].sort());
    await one.exporters.update(chooser, { kinds: ['other'] });
    t.same(await another.receivers(), [plain]);
    await one.exporters.update(chooser, { kinds: null });
    await one.exporters.stop(plain);
    t.same(await another.receivers(), [chooser]);
});

t.test('chooses by what the transaction of the application sees', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const { add, publish, deliveries } = await setting(t, postgresWebhooks({ pool }));
    const chooser = await add({ owner: 'one' });
    const published = await transaction(pool, (tx) => publish(KIND, BODY, { tx, owner: 'one' }));
    const rows = await Promise.all(published.deliveries.map((id) => deliveries.show(id)));
    t.same(
        rows.map(({ exporterId }) => exporterId),
        [chooser],
    );
});

t.test('sends what the format makes of an event, signed', async (t) => {
    const { add, receivers, sent } = await setting(t);
    const native = await add();
    const cloud = await add({ format: 'cloudevents' });
    await receivers();
    await until(() => sent.length === 2);
    const messages = new Map(sent.map((message) => [message.exporterId, message]));
    const [plain, formatted] = [present(messages.get(native)), present(messages.get(cloud))];
    t.same(JSON.parse(Buffer.from(plain.body).toString()), BODY);
    t.match(JSON.parse(Buffer.from(formatted.body).toString()), { specversion: '1.0', data: BODY });
    t.match(header(formatted, 'Content-Type'), /^application\/cloudevents\+json/);
    t.equal(header(formatted, 'X-Vendor-Event'), KIND);
    t.not(header(formatted, 'X-Vendor-Signature'), header(plain, 'X-Vendor-Signature'));
});

t.test('names the event and signs what is sent, in every format', async (t) => {
    const { exporters, add, receivers, sent } = await setting(t);
    const needs = { pagerduty: { formatSecret: 'r'.repeat(32) }, template: { template: { text: '{{ kind }}' } } };
    const ids = new Map<string, string>();
    for (const format of FORMATS) {
        ids.set(await add({ format, ...needs[format as keyof typeof needs] }), format);
    }
    await receivers();
    await until(() => sent.length === FORMATS.length);
    for (const message of sent) {
        const format = String(ids.get(message.exporterId));
        const key = await exporters.secret(message.exporterId);
        t.equal(header(message, 'X-Vendor-Event'), KIND, format);
        t.equal(header(message, 'Content-Type'), CONTENT_TYPES[format] ?? 'application/json; charset=UTF-8', format);
        t.equal(header(message, 'X-Vendor-Signature'), createHmac('sha256', key).update(message.body).digest('base64'), format);
    }
});

t.test('answers a repeated idempotency key with what was accepted, and refuses it for another event', async (t) => {
    const { add, publish, publishAll } = await setting(t);
    await add();
    const first = await publish(KIND, BODY, { idempotencyKey: 'a' });
    const { wake: _, ...again } = await publish(KIND, BODY, { idempotencyKey: 'a' });
    t.match(first, again);
    await t.rejects(publish(KIND, { ...BODY, title: 'other' }, { idempotencyKey: 'a' }), { code: 'CONFLICT', field: 'idempotencyKey' });
    await publish('other', { title: 'x' }, { idempotencyKey: 'c' });
    await t.rejects(publish('another', { title: 'x' }, { idempotencyKey: 'c' }), { code: 'CONFLICT', field: 'idempotencyKey' });
    await t.rejects(publish(KIND, BODY, { idempotencyKey: '' }), { code: 'INVALID_INPUT', field: 'idempotencyKey' });
    const one = { kind: KIND, body: BODY, idempotencyKey: 'b' };
    await t.rejects(publishAll([one, one]), { code: 'INVALID_INPUT', field: 'idempotencyKey' });
});

t.test('publishes many events, all of them or none', async (t) => {
    const { add, publishAll, deliveries } = await setting(t);
    const [all, owned] = [await add(), await add({ owner: 'one' })];
    const accepted = await publishAll([
        { kind: KIND, body: BODY },
        { kind: KIND, body: BODY, owner: 'one' },
    ]);
    const rows = await Promise.all(accepted.flatMap((one) => one.deliveries).map((id) => deliveries.show(id)));
    t.same(rows.map(({ exporterId }) => exporterId).sort(), [all, all, owned].sort());
    t.equal(accepted[1]?.deliveries.length, 2);
    t.same(await publishAll([]), []);
    const wrong = publishAll([
        { kind: KIND, body: BODY },
        { kind: KIND, body: {} as never },
    ]);
    await t.rejects(wrong, { code: 'INVALID_INPUT', field: /^\[1\]\./ });
    const large = { kind: 'other', body: { title: 'x'.repeat(1_000_000) } };
    await t.rejects(publishAll(Array(17).fill(large)), { code: 'INVALID_INPUT', field: 'events', message: /16777216 bytes/ });
    await t.rejects(
        publishAll([
            Object.defineProperty({ kind: KIND }, 'body', {
                enumerable: true,
                get: () => {
                    throw new RangeError('x');
                },
            }) as never,
        ]),
        RangeError,
    );
    await t.rejects(publishAll(Array(1_001).fill({ kind: KIND, body: BODY })), { code: 'INVALID_INPUT', field: 'events' });
    t.equal((await deliveries.list()).filter(({ kind }) => kind === KIND).length, 3);
});

t.test('ends the one delivery whose message cannot be made, with the reason', async (t) => {
    const formats = [
        { name: 'broken', contentType: 'text/plain', make: () => ({ body: Buffer.from([0xff]) }) },
        { name: 'endless', contentType: 'text/plain', make: () => ({ body: 'x'.repeat(3 * 2 ** 20 + 2 ** 16 + 1) }) },
    ];
    const { add, publish, deliveries, exporters } = await setting(t, memoryWebhooks(), formats);
    await add();
    const [broken, endless] = [await add({ format: 'broken' }), await add({ format: 'endless' })];
    const accepted = await publish(KIND, BODY);
    const ended = async () =>
        (await Promise.all(accepted.deliveries.map((id) => deliveries.show(id)))).filter(({ finishedAt }) => finishedAt !== null);
    await until(async () => (await ended()).length === 3);
    const details = new Map((await ended()).map(({ exporterId, history }) => [exporterId, history.at(-1)?.outcome]));
    t.match(details.get(broken), { code: 'invalid_message', detail: /not UTF-8/ });
    t.match(details.get(endless), { code: 'invalid_message', detail: /at most 3211264 bytes/ });
    await t.rejects(exporters.preview(broken, KIND, BODY), { code: 'INVALID_INPUT', field: 'format' });
});

t.test('explains who gets an event, and previews what is sent', async (t) => {
    const { add, exporters } = await setting(t);
    const id = await add({
        owner: 'one',
        kinds: ['idr_*'],
        filter: { path: 'title', op: 'contains', value: 'sign-in' },
        headers: [['Authorization', 'Bearer abc']],
    });
    t.same(await exporters.explain(id, KIND, BODY, { owner: 'one' }), { wanted: true });
    t.match(await exporters.explain(id, KIND, BODY), { wanted: false, reason: /owner/ });
    t.match(await exporters.explain(id, KIND, { ...BODY, title: 'x' }, { owner: 'one' }), { wanted: false, reason: /title/ });
    await t.rejects(exporters.explain(id, 'no such', BODY), { code: 'INVALID_INPUT', field: 'kind' });
    const { headers, body } = await exporters.preview(id, KIND, BODY);
    t.same(JSON.parse(body), BODY);
    t.notMatch(JSON.stringify(headers), /abc/);
    t.ok(headers.some(([name]) => name === 'X-Vendor-Signature'));
});

t.test('previews what would be sent with settings that nobody has saved, and stores nothing', async (t) => {
    const { add, exporters, sent } = await setting(t);
    const filter = { path: 'title', op: 'contains', value: 'sign-in' } as const;
    const made = await exporters.previewDraft({ kinds: ['idr_*'], filter, headers: [['Authorization', 'Bearer abc']] }, KIND, BODY);
    t.match(made, { wanted: true, body: JSON.stringify(BODY) });
    t.notMatch(JSON.stringify(made), /abc/);
    t.match(await exporters.previewDraft({ filter: { ...filter, value: 'x' } }, KIND, BODY), { wanted: false, reason: /title/ });
    t.match(await exporters.previewDraft({ owner: 'one' }, KIND, BODY), { wanted: true }, 'of an event of the same owner');
    t.match(await exporters.previewDraft({ format: 'template', template: { says: '{{body.title}}' } }, KIND, BODY), { body: /sign-in/ });
    await t.rejects(exporters.previewDraft({ kinds: ['none'] }, KIND, BODY), { code: 'INVALID_INPUT', field: 'kinds[0]' });
    await t.rejects(exporters.previewDraft({}, KIND, {}), { code: 'INVALID_INPUT' });

    const id = await add({ headers: [['X-Key', 'abc']], filter, secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw' });
    const changed = await exporters.previewDraft({ id, filter: null, signatures: ['hex'] }, KIND, BODY);
    t.match(new Map(changed.headers), new Map([['X-Key', '***']]));
    const { headers } = await exporters.preview(id, KIND, BODY);
    t.notSame(new Map(changed.headers).get('X-Vendor-Signature'), new Map(headers).get('X-Vendor-Signature'));
    t.match(await exporters.previewDraft({ id }, KIND, BODY), { wanted: true });
    await t.rejects(exporters.previewDraft({ id, type: 'investigation_legacy' }, KIND, BODY), { code: 'CONFLICT', field: 'type' });
    await t.rejects(exporters.previewDraft({ id: 'none' }, KIND, BODY), { code: 'NOT_FOUND' });
    t.match(await exporters.list(), [{ id, filter, signatures: ['base64'] }]);
    t.equal((await exporters.list()).length, 1);
    t.same(sent, []);
});

t.test('refuses what cannot be chosen', async (t) => {
    const { exporters } = await setting(t);
    for (const [settings, field] of [
        [{ kinds: [] }, 'kinds'],
        [{ kinds: ['a b'] }, 'kinds[0]'],
        [{ filter: { path: 'no.such', op: '=', value: 1 } }, /^filter/],
        [{ format: 'template' }, 'template'],
        [{ template: { a: 1 } }, 'template'],
        [{ format: 'pagerduty' }, 'formatSecret'],
        [{ formatSecret: 'x' }, 'formatSecret'],
        [{ owner: '' }, 'owner'],
    ] as const) {
        await t.rejects(
            exporters.create({ url: URL, ...(settings as object) }),
            { code: 'INVALID_INPUT', field },
            JSON.stringify(settings),
        );
    }
});

t.test('refuses choices that the store does not keep', async (t) => {
    const { exporters, ...stores } = memoryWebhooks();
    const { subscribers: _, ...keepsNone } = exporters;
    const { idempotent: __, ...deliveries } = stores.deliveries;
    const self = await setting(t, { ...stores, deliveries, exporters: keepsNone });
    await t.rejects(self.publish(KIND, BODY, { idempotencyKey: 'a' }), { code: 'MISCONFIGURED', field: 'idempotencyKey' });
    await t.rejects(self.add({ owner: 'one' }), { code: 'MISCONFIGURED', field: 'owner' });
    const plain = await self.add();
    t.same(await self.receivers({ owner: 'one' }), [plain]);
});
