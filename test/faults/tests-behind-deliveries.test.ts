import t, { type Test } from 'tap';
import type { DeliveryJob } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import type { WebhooksOptions } from '../../lib/webhooks/options.ts';
import { jobsInHand } from '../../lib/webhooks/sending/jobs-in-hand.ts';
import { INVESTIGATION, type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

/** How long a test may take in ms, whose receiver answers it after 50 ms. */
const SOON = 1_000;
/** How long receivers take for everything else. */
const SLOW = 14_000;

async function testsSoon(t: Test, deployment: SimulatedDeployment, process: SimulatedProcess, id: string, name: string): Promise<void> {
    const begunAt = deployment.now();
    const { attempt } = await deployment.finish(process.exporters.test(id));
    t.match(attempt?.outcome, { code: 'delivered' }, name);
    t.ok(deployment.now() - begunAt < SOON, `${name}: ${deployment.now() - begunAt} ms`);
}

/** A process whose deliveries go to receivers that are slow from now on, and so many exporters. */
async function slow(t: Test, exporters: number, options: Partial<WebhooksOptions>) {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', options);
    const ids: string[] = [];
    while (ids.length < exporters) {
        ids.push(await deployment.exporter(process));
    }
    deployment.receive = () => ({ result: 204, after: SLOW });
    return { deployment, process, ids };
}

t.test('a test does not wait for a place that deliveries have', async (t) => {
    const { deployment, process, ids } = await slow(t, 4, { window: 400 });
    deployment.receive = () => ({ result: 204 });
    await deployment.publish(process, 50);
    await deployment.advance(5_000);
    deployment.posts.length = 0;
    deployment.receive = () => ({ result: 204, after: SLOW });
    await deployment.publish(process, 400);
    await deployment.advance(300);
    t.ok(deployment.posts.length >= 300, 'most places are taken');
    await testsSoon(t, deployment, process, ids[0] as string, 'of an exporter whose deliveries have them');
});

t.test('nor where there is one place only', async (t) => {
    const { deployment, process } = await slow(t, 0, {});
    await process.work(['narrow'], { concurrency: 1 });
    const made = await Promise.all([1, 2].map(() => process.exporters.create({ url: 'http://127.0.0.1/', collector: 'narrow' })));
    for (const { exporter } of made) {
        await deployment.finish(process.exporters.start(exporter.id));
    }
    await deployment.publish(process, 3);
    await deployment.advance(500);
    t.equal(deployment.posts.length, 1, 'the place is taken');
    for (const { exporter } of made) {
        await testsSoon(t, deployment, process, exporter.id, 'of either exporter');
    }
    t.equal(deployment.posts.length, 1, 'no other delivery has begun in a place of the tests');
});

t.test('nor for the memory that bodies have', async (t) => {
    const { deployment, process, ids } = await slow(t, 1, { window: 400 });
    const large = { ...INVESTIGATION, title: 't'.repeat(1_000_000) };
    await deployment.finish(Promise.all(Array.from({ length: 100 }, () => process.publish('idr_investigation_created', large))));
    await deployment.advance(1_000);
    t.ok(deployment.posts.length < 100, 'some bodies wait for memory');
    await testsSoon(t, deployment, process, ids[0] as string, 'of the exporter whose bodies have it');
    const { exporter } = await process.exporters.create({ url: 'http://127.0.0.1/' });
    await testsSoon(t, deployment, process, exporter.id, 'of another one');
});

t.test('nor where jobs are handed over with their claims', async (t) => {
    const begun: string[] = [];
    const hands = jobsInHand(({ deliveryId }) => new Promise(() => void begun.push(deliveryId)), 2, {
        report: (error) => t.fail(error.message),
        leave: ({ deliveryId }) => t.fail(`${deliveryId} was left`),
    });
    const job = (deliveryId: string, singleAttempt = false): DeliveryJob => ({
        deliveryId,
        collector: 'default',
        attempt: 1,
        singleAttempt,
        reservation: { token: deliveryId, beginBy: 0, generation: 1, attemptSinceReplay: 1, settings: 1 } as never,
    });
    for (const deliveryId of ['one', 'two', 'three']) {
        void hands.begin([job(deliveryId)]);
    }
    await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(begun, ['one', 'two']);
    void hands.begin([job('a test', true)]);
    t.ok(hands.takes(job('another test', true)));
    t.notOk(hands.takes(job('four')));
    await new Promise((resolve) => setImmediate(resolve));
    t.strictSame(begun, ['one', 'two', 'a test', 'another test']);
    let taken = 0;
    while (hands.takes(job(`test ${taken}`, true))) {
        taken += 1;
    }
    t.ok(taken < 20, 'there are so many places for tests, and no more');
});
