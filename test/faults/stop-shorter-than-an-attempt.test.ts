import { randomBytes } from 'node:crypto';
import hapi from '@hapi/hapi';
import t, { type Test } from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { plugin } from '../../plugins/webhook-exporter/index.ts';
import { type WebhookExporterOptions, webhooksOf } from '../../plugins/webhook-exporter/options.ts';

const options = (more: Partial<WebhookExporterOptions>): WebhookExporterOptions => ({
    stores: memoryWebhooks(),
    queue: memoryQueue(),
    keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
    ...more,
});

/** What a server warns of when it starts. */
async function warnings(t: Test, more: Partial<WebhookExporterOptions>): Promise<readonly unknown[]> {
    const server = hapi.server();
    const said: unknown[] = [];
    server.events.on({ name: 'log', filter: 'warn' }, ({ data }) => void said.push(data));
    await server.register({ plugin, options: options(more) });
    await server.start();
    t.teardown(() => server.stop());
    return said;
}

t.test('a stop gives every attempt its time, however long it may take', async (t) => {
    for (const [attemptTimeout, drainTimeout] of [
        [1_000, 20_000],
        [15_000, 20_000],
        [30_000, 35_000],
    ] as const) {
        t.match(webhooksOf(options({ attemptTimeout }), {}), { drainTimeout }, `of ${attemptTimeout} ms`);
    }
    t.match(webhooksOf(options({ attemptTimeout: 30_000, drainTimeout: 5_000 }), {}), { drainTimeout: 5_000 });
});

t.test('a time for stopping that cuts off attempts is warned of', async (t) => {
    t.match(await warnings(t, { attemptTimeout: 30_000, drainTimeout: 20_000 }), [
        /^drainTimeout \(20000 ms\) is shorter than attemptTimeout \(30000 ms\) and 1000 ms for the outcome/,
    ]);
    t.strictSame(await warnings(t, { attemptTimeout: 30_000 }), []);
    t.strictSame(await warnings(t, { drainTimeout: 16_000 }), []);
});
