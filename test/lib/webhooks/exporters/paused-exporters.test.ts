import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { recordingProcess } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

t.test('sends nothing but a test to an exporter that is paused, and all that waits once it is resumed', async (t) => {
    const { publish, exporters, deliveries, sent, start, work } = recordingProcess(t, memoryWebhooks());
    await start();
    await work(['default']);
    const { exporter } = await exporters.create({ url: 'https://receiver.example/' });
    const { id } = exporter;
    await exporters.start(id);
    t.equal(sent.length, 1);

    const paused = await exporters.pause(id);
    t.match(paused, { id, state: 'running', pausedAt: Date });
    t.same(await exporters.pause(id), paused, 'once more changes nothing');
    t.match(await exporters.show(id), { pausedAt: paused.pausedAt, health: { breaker: 'closed' } });
    await publish('idr_investigation_created', { ...INVESTIGATION, title: 'One' });
    await publish('idr_investigation_created', { ...INVESTIGATION, title: 'One' });
    t.match(await exporters.test(id), { attempt: { outcome: { code: 'delivered' } } });
    t.match(await exporters.update(id, { name: 'other' }), { exporter: { pausedAt: paused.pausedAt } });
    t.equal(sent.length, 3);
    t.match(await exporters.show(id), { health: { inFlight: 0, backlog: { waiting: 2 } } });

    t.match(await exporters.resume(id), { state: 'running', pausedAt: null });
    await until(async () => (await deliveries.list({ state: 'delivered' })).length === 5);
    await t.rejects(exporters.pause('unknown'), { code: 'NOT_FOUND' });
    await t.rejects(exporters.resume('unknown'), { code: 'NOT_FOUND' });
});
