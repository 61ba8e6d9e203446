import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { newProgress, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { recordingProcess, taken } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

const refused = outcomeOf({ code: 'client_error', status: 400, detail: 'Answered 400', retryAfter: null }, newProgress(), 1);

t.test('sends what failed once more, the same bytes under the same id, in a process that was started after it was asked for', async (t) => {
    const stores = memoryWebhooks();
    let answer = taken;
    const first = recordingProcess(t, stores, {}, async () => answer);
    await first.start();
    await first.work(['default']);
    const { exporter } = await first.exporters.create({ url: 'https://receiver.example/' });
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
    const bodies = (messages: typeof first.sent) => messages.map(({ body }) => String(body)).sort();
    t.same(bodies(second.sent), bodies(first.sent.slice(1)));
    t.match(await second.deliveries.replays.cancel(replay.id), { state: 'done' });
    await t.rejects(second.deliveries.replays.cancel('unknown'), { code: 'NOT_FOUND' });
    await t.rejects(second.deliveries.replays.begin({ ...options, rate: 0 }), { code: 'INVALID_INPUT', field: 'rate' });
    await t.rejects(second.deliveries.replays.begin({ exporterId: id }), { code: 'INVALID_INPUT' });
    await t.rejects(second.deliveries.replays.begin({ ...options, held: true }), { code: 'INVALID_INPUT' });
    t.match(await second.deliveries.replays.begin({ exporterId: id, held: true }), { failedSince: null, total: 0 });
});

t.test('says that a store keeps no replays', async (t) => {
    const { deliveries, ...stores } = memoryWebhooks();
    const { replays: _, ...without } = deliveries;
    const { deliveries: asked } = recordingProcess(t, { ...stores, deliveries: without });
    await t.rejects(asked.replays.list(), { code: 'MISCONFIGURED', message: /keeps no replays/ });
});
