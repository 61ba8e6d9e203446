import fc from 'fast-check';
import t from 'tap';
import { present, until } from '../../../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { newProgress, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import type { Message } from '../../../../lib/webhooks/sending/http-sender.ts';
import { FORMATS } from '../../../../lib/webhooks/setting-values.ts';
import { recordingProcess, taken } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

const refused = outcomeOf({ code: 'client_error', status: 400, detail: 'Answered 400', retryAfter: null }, newProgress(), 1);

t.test('sends what failed once more, the same bytes under the same id, in a process that was started after it was asked for', async (t) => {
    const stores = memoryWebhooks();
    let answer = taken;
    const first = recordingProcess(t, stores, {}, async () => answer);
    await first.start();
    await first.work(['default']);
    const { exporter } = await first.exporters.create({ url: 'https://receiver.example/', signatures: ['standard-webhooks'] });
    const { id } = exporter;
    await first.exporters.start(id);
    answer = refused;
    const published = [1, 2, 3].map((title) => first.publish('idr_investigation_created', { ...INVESTIGATION, title: `${title}` }));
    await Promise.all(published);
    await until(async () => (await first.deliveries.count({ outcome: 'client_error' })).count === 3);
    await first.close();

    const options = { exporterId: id, failedSince: new Date(0) };
    t.equal(await first.deliveries.replays.count(options), 3);
    const replay = await first.deliveries.replays.begin(options);
    t.match(replay, { exporterId: id, rate: 100, total: 3, done: 0, state: 'running' });

    const second = recordingProcess(t, stores);
    await second.start();
    await second.work(['default']);
    await until(async () => (await second.deliveries.list({ state: 'delivered' })).length === 4);
    t.match(await second.deliveries.replays.list(), [{ id: replay.id, done: 3, state: 'done' }]);
    t.same(idsAndBodies(second.sent), idsAndBodies(first.sent.slice(1)));
    t.match(await second.deliveries.replays.cancel(replay.id), { state: 'done' });
    await t.rejects(second.deliveries.replays.cancel('unknown'), { code: 'NOT_FOUND' });
    await t.rejects(second.deliveries.replays.begin({ ...options, rate: 0 }), { code: 'INVALID_INPUT', field: 'rate' });
    await t.rejects(second.deliveries.replays.begin({ exporterId: id }), { code: 'INVALID_INPUT' });
    await t.rejects(second.deliveries.replays.begin({ ...options, held: true }), { code: 'INVALID_INPUT' });
    t.match(await second.deliveries.replays.begin({ exporterId: id, held: true }), { failedSince: null, total: 0 });
});

t.test('never changes what is sent, whatever it is and in whatever format', async (t) => {
    let answer = taken;
    const process = recordingProcess(t, memoryWebhooks(), {}, async () => answer);
    await process.start();
    await process.work(['default']);
    const needs = { pagerduty: { formatSecret: 'r'.repeat(32) }, template: { template: { text: '{{ id }} {{ time }} {{ body.title }}' } } };
    for (const format of FORMATS) {
        const more = needs[format as keyof typeof needs];
        const { exporter } = await process.exporters.create({
            url: `https://${format}.example/`,
            format,
            signatures: ['standard-webhooks'],
            ...more,
        });
        await process.exporters.start(exporter.id);
    }
    const finished = async (ids: readonly string[]) =>
        (await Promise.all(ids.map((id) => process.deliveries.show(id)))).every(({ finishedAt }) => finishedAt !== null);
    const property = fc.asyncProperty(fc.string({ unit: 'grapheme', minLength: 1 }), async (title) => {
        process.sent.length = 0;
        answer = taken;
        const { deliveries } = await process.publish('idr_investigation_created', { ...INVESTIGATION, title });
        await until(() => finished(deliveries));
        const before = idsAndBodies(process.sent.splice(0));
        await Promise.all(deliveries.map((id) => process.deliveries.replay(id)));
        await until(() => finished(deliveries));
        t.same(idsAndBodies(process.sent), before);
        t.equal(before.length, FORMATS.length);
    });
    await fc.assert(property, { numRuns: 25 });
});

function idsAndBodies(messages: readonly Message[]): readonly string[] {
    const idOf = ({ headers }: Message) => headers.find(([name]) => name.toLowerCase() === 'webhook-id')?.[1];
    return messages.map((message) => JSON.stringify([message.exporterId, present(idOf(message)), String(message.body)])).toSorted();
}

t.test('says that a store keeps no replays', async (t) => {
    const { deliveries, ...stores } = memoryWebhooks();
    const { replays: _, ...without } = deliveries;
    const { deliveries: asked } = recordingProcess(t, { ...stores, deliveries: without });
    await t.rejects(asked.replays.list(), { code: 'MISCONFIGURED', message: /keeps no replays/ });
});
