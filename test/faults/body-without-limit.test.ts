import { randomBytes } from 'node:crypto';
import Joi from 'joi';
import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { WebhooksOptions } from '../../lib/webhooks/options.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';

function exporterOf(options: Partial<WebhooksOptions> = {}) {
    const guard = egressGuard({ allow: [] });
    return webhooks({
        ...memoryWebhooks(),
        queue: memoryQueue(),
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        kinds: [{ name: 'note', schema: Joi.object({ text: Joi.string().allow('') }) }],
        ...options,
    });
}

/** So many bytes around the text: `{"text":""}`. */
const AROUND = 11;

t.test('a body is at most 1 MiB, and refused by its kind and size', async (t) => {
    const stores = memoryWebhooks();
    const accepted: string[] = [];
    const { publish } = exporterOf({
        ...stores,
        deliveries: {
            ...stores.deliveries,
            async accept(events, options) {
                accepted.push(...events.map(({ event }) => event.body));
                return await stores.deliveries.accept(events, options);
            },
        },
    });
    await t.rejects(publish('note', { text: 'x'.repeat(1_048_576 - AROUND + 1) }), {
        code: 'INVALID_INPUT',
        field: 'body',
        message: 'Body of note must be at most 1048576 bytes; it has 1048577',
    });
    t.same(accepted, [], 'nothing gets to the store');
    await publish('note', { text: 'x'.repeat(1_048_576 - AROUND) });
    t.same(
        accepted.map((body) => body.length),
        [1_048_576],
    );
});

t.test('the limit is an option, in bytes of what is sent', async (t) => {
    const { publish } = exporterOf({ maxBodyBytes: 1_000 });
    const text = 'x'.repeat(1_000 - AROUND - 4);
    await publish('note', { text: `${text}🦉` });
    await t.rejects(publish('note', { text: `${text}🦉x` }), { field: 'body', message: /at most 1000 bytes; it has 1001$/ });
    await t.rejects(publish('note', { text: `${text}"""` }), { field: 'body', message: /it has 1002$/ });
    t.throws(() => exporterOf({ maxBodyBytes: 64 * 1024 * 1024 + 1 }), { code: 'MISCONFIGURED', field: 'maxBodyBytes' });
});
