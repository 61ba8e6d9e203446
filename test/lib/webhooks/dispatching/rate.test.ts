import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { recordingProcess } from '../../../support/recording-process.ts';
import { simulatedDeployment } from '../../../support/simulated-deployment.ts';

const RATE = 5;
const EVENTS = 6;

t.test('sends no more in a second than the rate of the deployment, by two processes, and all in the end', async (t) => {
    const deployment = simulatedDeployment(t);
    // Each with the jobs that it hands out itself.
    const host = await deployment.start('host', { rate: RATE, queue: memoryQueue() });
    const other = await deployment.start('other', { rate: RATE, queue: memoryQueue() });
    await deployment.exporter(host);
    await deployment.exporter(host);
    await Promise.all([deployment.publish(host, EVENTS), deployment.publish(other, EVENTS - 1)]);
    const total = 2 * (EVENTS + EVENTS - 1);
    await deployment.advance((500 * total) / RATE);
    // The one that comes first whenever both are due leaves the rest to the other.
    await deployment.finish(host.close());
    await deployment.advance((500 * total) / RATE);
    const sentAt = deployment.posts.map(({ at }) => at);
    t.equal(sentAt.length, total);
    const [first = 0] = sentAt;
    t.ok((sentAt.at(-1) ?? 0) - first > (1_000 * (total - RATE)) / RATE - 100, 'each costs its share of a second');
    t.same(new Set(deployment.posts.map(({ by }) => by)), new Set(['host', 'other']));
    for (const time of sentAt) {
        const within = sentAt.filter((one) => one >= time && one < time + 900).length;
        t.ok(within <= 2 * RATE, `${within} within a second: a second's worth that was left and what has come since`);
    }
});

t.test('sends as many as the rate of the deployment allows where an exporter may have few in flight', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { rate: 40, window: 5 });
    await deployment.exporter(process);
    await deployment.publish(process, 100);
    await deployment.advance(1_000);
    t.ok(deployment.posts.length >= 40, `${deployment.posts.length} in the first second`);
    t.ok(deployment.posts.length <= 80, `${deployment.posts.length}: what was left and what has come since`);
    await deployment.advance(2_000);
    t.equal(deployment.posts.length, 100);
});

t.test('refuses a rate with a store that heeds none, and one that is none', async (t) => {
    const { deliveries, ...others } = memoryWebhooks();
    const { rated: _, ...without } = deliveries;
    t.throws(() => recordingProcess(t, { ...others, deliveries: without }, { rate: RATE }), { code: 'MISCONFIGURED', field: 'rate' });
    t.throws(() => recordingProcess(t, memoryWebhooks(), { rate: 0 }), { code: 'MISCONFIGURED', field: 'rate' });
});

t.test('refuses a worker whose rate is not that of its host', async (t) => {
    for (const [ofHost, ofWorker] of [
        [RATE, null],
        [null, RATE],
        [RATE, RATE + 1],
    ] as const) {
        const stores = memoryWebhooks();
        await recordingProcess(t, stores, { rate: ofHost }).start();
        const worker = recordingProcess(t, stores, { rate: ofWorker, role: 'worker' });
        await t.rejects(worker.start(), {
            code: 'MISCONFIGURED',
            field: 'rate',
            message: /rate is (?:not set|[56]) here and (?:not set|5) in the store/,
        });
    }
});
