import { randomBytes } from 'node:crypto';
import t from 'tap';
import { keyRing } from '../../lib/keys/key-ring.ts';
import { emitPoisoned, type WebhookEvent } from '../../lib/webhooks/observing/emitted-events.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;
/** How long a claim holds, and what it may take until it is found to have run out, and until what is due is handed out. */
const CLAIM = 20_000;
const POLLS = 2_000;
/** Seconds of the back-off after each fault in a row. */
const BACK_OFF = [1, 2, 4, 8, 16, 32, ...Array<number>(13).fill(60)];
const NEVER = { result: 204, after: Number.POSITIVE_INFINITY } as const;

/** Seconds from each moment to the next. */
function gaps(moments: readonly number[]): number[] {
    return moments.slice(1).map((at, index) => (at - (moments[index] ?? 0)) / 1000);
}

t.test('a delivery whose claims run out 20 times in a row is poisoned, and can be replayed', async (t) => {
    const deployment = simulatedDeployment(t);
    const told: WebhookEvent[] = [];
    const onEvent = (event: WebhookEvent): void => void told.push(event);
    const process = await deployment.start('only', { onEvent });
    await deployment.start('other', { onEvent });
    const exporterId = await deployment.exporter(process);
    deployment.receive = () => NEVER;
    const [id = ''] = await deployment.publish(process, 1);
    await deployment.advance(60 * MINUTE);

    t.match(
        told.filter((event) => 'deliveryId' in event && event.deliveryId === id),
        [{ type: 'delivery.poisoned', exporterId, attempt: 20, code: 'interrupted' }],
        'by one process, once',
    );
    const times = deployment.posts.map(({ at }) => at);
    t.equal(times.length, 20);
    for (const [index, gap] of gaps(times).entries()) {
        const least = CLAIM / 1000 + (BACK_OFF[index] ?? 0);
        t.ok(gap >= least && gap <= least + POLLS / 1000, `attempt ${index + 2} comes ${least} s to ${least + 2} s later: ${gap}`);
    }
    const shown = await process.deliveries.show(id);
    t.match(shown, { state: 'poisoned', finishedAt: Date, attempts: 20, lastCode: 'interrupted' });
    t.ok(shown.history.every(({ outcome }) => outcome?.code === 'interrupted'));
    t.match(await process.deliveries.list({ state: 'poisoned' }), [{ id }]);
    t.match(await process.exporters.get(exporterId), { state: 'running', consecutiveFailures: 0 });

    deployment.receive = () => ({ result: 204 });
    await process.deliveries.replay(id);
    await deployment.advance(1_000);
    t.match(await process.deliveries.show(id), { state: 'delivered', attempts: 21 });
    const heard: WebhookEvent[] = [];
    const context = {
        deliveries: deployment.stores.deliveries,
        onEvent: (event: WebhookEvent) => void heard.push(event),
        onError: t.error,
    };
    await emitPoisoned([id], context);
    t.strictSame(heard, [], 'of one that was replayed by the time it is looked at nothing is told');
});

t.test('claims that ran out use up no try of the schedule', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const exporterId = await deployment.exporter(process);
    await deployment.finish(process.exporters.update(exporterId, { schedule: [5_000, 7_000] }));
    const answered = () => deployment.posts.slice(12);
    deployment.receive = () => (answered().length === 0 ? NEVER : { result: 503 });
    const [id = ''] = await deployment.publish(process, 1);
    await deployment.advance(60 * MINUTE);
    t.match(await process.deliveries.show(id), { state: 'exhausted', lastCode: 'server_error', attempts: 15 });
    const [first = 0, second = 0] = gaps(answered().map(({ at }) => at));
    t.ok(first >= 5 && first <= 6.1, `the first delay of the schedule: ${first}`);
    t.ok(second >= 7 && second <= 8.1, `the second: ${second}`);
});

t.test('other deliveries go on beside one that is never answered', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    await deployment.exporter(process);
    deployment.receive = ({ title }) => (title === '1' ? NEVER : { result: 204 });
    await deployment.publish(process, 100);
    await deployment.advance(2_000);
    t.strictSame(await deployment.states(), { sending: 1, delivered: 99 });
});

t.test('a worker without the key of a secret blames nobody, and the next with it delivers', async (t) => {
    const deployment = simulatedDeployment(t);
    const [old, fresh] = [randomBytes(32), randomBytes(32)];
    const both = keyRing({ current: 'fresh', keys: { old, fresh } });
    const behind = await deployment.start('behind', { keyRing: keyRing({ current: 'old', keys: { old } }) });
    const exporterId = await deployment.exporter(behind);
    const host = await deployment.start('host', { keyRing: both });
    await deployment.finish(behind.exporters.update(exporterId, { schedule: [5_000] }));
    await deployment.finish(host.exporters.update(exporterId, { secret: 'sealed with the fresh key' }));
    host.kill();

    const [id = ''] = await deployment.publish(behind, 1);
    await deployment.advance(10 * MINUTE);
    const { state, history } = await behind.deliveries.show(id);
    t.equal(state, 'pending');
    t.ok(history.every(({ outcome }) => outcome?.code === 'interrupted' && /Missing key fresh/.test(outcome.detail)));
    const delays = gaps(history.map(({ startedAt }) => startedAt.getTime()));
    t.ok(delays.length > 10);
    for (const [index, delay] of delays.entries()) {
        const least = BACK_OFF[index] ?? 0;
        t.ok(delay >= least && delay <= least + 1.1, `${least} s: ${delay}`);
    }
    t.match(await behind.exporters.get(exporterId), { state: 'running', consecutiveFailures: 0 });
    t.equal(deployment.posts.length, 0);

    behind.kill();
    deployment.receive = () => ({ result: deployment.posts.length === 1 ? 503 : 204 });
    const next = await deployment.start('next', { keyRing: both });
    await deployment.advance(MINUTE + 10_000);
    t.match(await next.deliveries.show(id), { state: 'delivered' }, 'its schedule of one retry was not used before');
    t.equal(deployment.posts.length, 2);
});

t.test('20 faults in a row that are no claims that ran out poison nothing', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const exporterId = await deployment.exporter(process);
    deployment.receive = () => ({ result: deployment.posts.length <= 30 ? 'interrupted' : 204 });
    const [id = ''] = await deployment.publish(process, 1);
    await deployment.advance(60 * MINUTE);
    t.match(await process.deliveries.show(id), { state: 'delivered', attempts: 31 });
    t.match(await process.exporters.get(exporterId), { state: 'running', consecutiveFailures: 0 });
});
