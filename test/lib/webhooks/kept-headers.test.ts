import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { egressGuard } from '../../../lib/egress/guard.ts';
import { keyRing } from '../../../lib/keys/key-ring.ts';
import type { WebhookStores } from '../../../lib/webhooks/options.ts';
import { httpSender } from '../../../lib/webhooks/sending/http-sender.ts';
import { type Webhooks, webhooks } from '../../../lib/webhooks/webhooks.ts';
import { INVESTIGATION } from '../../support/simulated-deployment.ts';

/*
 * A header is added beside others whose values nobody has at hand: in a change, a name with null keeps the value that there is. It stays with
 * the receiver that it was given for.
 */

async function engine(t: Test, stores: WebhookStores = memoryWebhooks()): Promise<Webhooks> {
    const queue = memoryQueue();
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const made = webhooks({
        ...stores,
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
    });
    await made.start();
    await made.work(['default']);
    t.teardown(async () => {
        await made.close();
        await queue.close();
    });
    return made;
}

/** What a receiver got last. */
async function receiver(t: Test): Promise<{ readonly url: string; headers: IncomingHttpHeaders }> {
    const state = { url: '', headers: {} as IncomingHttpHeaders };
    const server = createServer((request, response) => {
        state.headers = request.headers;
        request.resume().on('end', () => response.writeHead(204).end());
    });
    await once(server.listen(0, '127.0.0.1'), 'listening');
    t.teardown(() => server.close().closeAllConnections());
    state.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    return state;
}

t.test('keeps the value of a header that is named without one, in its place', async (t) => {
    const { exporters } = await engine(t);
    const seen = await receiver(t);
    const { exporter } = await exporters.create({
        url: seen.url,
        headers: [
            ['X-Key', 'first'],
            ['X-Gone', 'gone'],
        ],
    });
    const { exporter: changed } = await exporters.update(exporter.id, {
        headers: [
            ['X-New', 'second'],
            ['x-key', null],
        ],
    });
    t.same(changed.headerNames, ['X-New', 'x-key']);
    t.match(seen.headers, { 'x-key': 'first', 'x-new': 'second' });
    t.notOk('x-gone' in seen.headers, 'what is not named is dropped');
});

t.test('refuses to keep what there is not, and makes none of nothing', async (t) => {
    const { exporters } = await engine(t);
    const { exporter } = await exporters.create({ url: (await receiver(t)).url, headers: [['X-Key', 'first']] });
    const refusal = { code: 'INVALID_INPUT', field: 'headers' };
    await t.rejects(exporters.update(exporter.id, { headers: [['X-Other', null]] }), {
        ...refusal,
        message: /no value that could be kept/,
    });
    await t.rejects(
        exporters.update(exporter.id, {
            headers: [
                ['X-Key', null],
                ['x-key', null],
            ],
        }),
        { ...refusal, message: /given twice/ },
    );
    await t.rejects(exporters.create({ url: 'http://127.0.0.1:9/', headers: [['X-Key', null as unknown as string]] }), {
        code: 'INVALID_INPUT',
    });
    t.same((await exporters.get(exporter.id)).headerNames, ['X-Key']);
});

t.test('takes no kept value to another receiver unasked', async (t) => {
    const { exporters } = await engine(t);
    const [first, second] = [await receiver(t), await receiver(t)];
    const { exporter } = await exporters.create({ url: first.url, headers: [['X-Key', 'first']] });
    const headers = [
        ['X-Key', null],
        ['X-New', 'second'],
    ] as const;
    await t.rejects(exporters.update(exporter.id, { url: second.url, headers }), { code: 'INVALID_INPUT', field: 'headers' });
    t.same(second.headers, {});
    await exporters.update(exporter.id, { url: second.url, headers, keepHeaders: true });
    t.match(second.headers, { 'x-key': 'first', 'x-new': 'second' });
});

t.test('keeps what somebody else has given meanwhile, not what was there when it was asked', async (t) => {
    const stores = memoryWebhooks();
    const seen = await receiver(t);
    let meanwhile: () => Promise<unknown> = async () => {};
    const { update } = stores.exporters;
    const slow: WebhookStores = {
        ...stores,
        exporters: {
            ...stores.exporters,
            async update(id, patch) {
                const other = meanwhile;
                meanwhile = async () => {};
                await other();
                return await update.call(stores.exporters, id, patch);
            },
        },
    };
    const { exporters } = await engine(t, slow);
    const { exporter } = await exporters.create({ url: seen.url, headers: [['X-Key', 'old']] });
    meanwhile = () => exporters.update(exporter.id, { headers: [['X-Key', 'new']] });
    await exporters.update(exporter.id, {
        headers: [
            ['X-Key', null],
            ['X-More', 'more'],
        ],
    });
    t.match(seen.headers, { 'x-key': 'new', 'x-more': 'more' });
});

t.test('shows what would be sent with a kept value, masked', async (t) => {
    const { exporters } = await engine(t);
    const { exporter } = await exporters.create({ url: (await receiver(t)).url, headers: [['X-Key', 'hidden-word']] });
    const draft = {
        id: exporter.id,
        headers: [
            ['X-Key', null],
            ['X-New', 'v'],
        ] as const,
    };
    const { headers } = await exporters.previewDraft(draft, 'idr_investigation_created', { ...INVESTIGATION, title: 'One' });
    t.same(headers.slice(-2), [
        ['X-Key', '***'],
        ['X-New', '***'],
    ]);
});
