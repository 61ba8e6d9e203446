import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import t, { type Test } from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import { memoryQueue, memoryWebhooks } from '../../adapters/memory/index.ts';
import { egressGuard } from '../../lib/egress/guard.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { WebhooksSettings } from '../../lib/webhooks/options.ts';
import { httpSender } from '../../lib/webhooks/sending/http-sender.ts';
import { webhooks } from '../../lib/webhooks/webhooks.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { investigation } from '../support/investigation.ts';

const KIND = 'idr_investigation_created';
const EVENTS = 250;

interface Limits {
    readonly settings?: Partial<WebhooksSettings>;
    readonly concurrency?: number;
}

/** Events for a receiver that answers when it is told to. */
async function unanswered(t: Test, { settings = {}, concurrency }: Limits) {
    const held: ServerResponse[] = [];
    let answers = false;
    const answer = (response: ServerResponse): unknown => response.writeHead(204).end();
    const receiver = await countingReceiver(t, (response) => void (answers ? answer(response) : held.push(response)));
    const guard = egressGuard({ allow: ['127.0.0.0/8'] });
    const queue = memoryQueue();
    const engine = webhooks({
        ...memoryWebhooks(),
        queue,
        keyRing: keyRing({ current: 'k', keys: { k: randomBytes(32) } }),
        guard,
        sender: httpSender({ guard }),
        ...settings,
    });
    t.teardown(async () => {
        await engine.close();
        await queue.close();
    });
    await engine.start();
    await engine.work(['default'], concurrency === undefined ? {} : { concurrency });
    const { exporter } = await engine.exporters.create({ url: receiver.url });
    await engine.exporters.start(exporter.id);
    await Promise.all(Array.from({ length: EVENTS }, () => engine.publish(KIND, investigation)));
    return {
        engine,
        id: exporter.id,
        receiver,
        answerAll() {
            answers = true;
            held.forEach(answer);
        },
    };
}

for (const [limits, atOnce] of [
    [{}, 200],
    [{ settings: { window: 30 } }, 30],
    [{ concurrency: 20 }, 10],
] as const) {
    t.test(`what is in flight is with its receiver, and what does not fit in its row: ${JSON.stringify(limits)}`, async (t) => {
        const { engine, id, receiver, answerAll } = await unanswered(t, limits);
        const events = async () => (await engine.deliveries.list({ limit: 1000 })).filter(({ kind }) => kind === KIND);
        await receiver.received(KIND, atOnce);
        const waiting = (await events()).filter(({ state }) => state === 'pending');
        t.equal(waiting.length, EVENTS - atOnce, 'nothing waits in the process');
        t.ok(waiting.every(({ attempts }) => attempts === 0));

        answerAll();
        await until(async () => (await events()).every(({ state }) => state === 'delivered'));
        t.ok((await events()).every(({ attempts }) => attempts === 1));
        t.equal(receiver.kinds.filter((kind) => kind === KIND).length, EVENTS, 'none is sent twice');
        t.match(await engine.exporters.get(id), { state: 'running', consecutiveFailures: 0 });
    });
}
