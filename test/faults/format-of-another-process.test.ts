import t, { type Test } from 'tap';
import type { Format } from '../../lib/webhooks/formats/format.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;
const LINE: Format = {
    name: 'line',
    contentType: 'application/json',
    make: ({ id, body, time }) => ({
        body: JSON.stringify({ id, title: `line of ${(body as { title: string }).title} at ${time.toISOString()}` }),
    }),
};

/** An event for an exporter of that format, which a process has just accepted that has no such format. */
async function acceptedWithout(t: Test) {
    const deployment = simulatedDeployment(t);
    const having = await deployment.start('having', { formats: [LINE] });
    const id = await deployment.exporter(having);
    await deployment.finish(having.exporters.update(id, { format: 'line' }));
    await deployment.finish(having.close());
    const lacking = await deployment.start('lacking', { onWarning: () => undefined });
    const [delivery = ''] = await deployment.publish(lacking, 1);
    return { deployment, lacking, id, delivery };
}

t.test('what a process accepts without having the format is sent by one that has it', async (t) => {
    const { deployment, lacking, id, delivery } = await acceptedWithout(t);
    await deployment.advance(10 * SECOND);
    const { history } = await lacking.deliveries.show(delivery);
    t.match(history[0], { outcome: { code: 'interrupted', detail: /^This process has no format line/ } });
    t.ok(history.length < 6, 'the tries are further and further apart');
    t.match(await lacking.exporters.show(id), { consecutiveFailures: 0, health: { breaker: 'closed' } });

    await deployment.start('again', { formats: [LINE] });
    await deployment.finish(lacking.close());
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 1 });
    t.equal(deployment.posts.length, 1);
    t.match(deployment.posts[0], { by: 'again', title: /^line of 1 at 2026-11-21T/ });
});

t.test('an exporter that has another format by then is not sent a message of it', async (t) => {
    const { deployment, lacking, id } = await acceptedWithout(t);
    await deployment.finish(lacking.exporters.update(id, { format: 'native' }));
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { exhausted: 1 });
    t.equal(deployment.posts.length, 0);
});

t.test('a message with a place for a secret that the exporter has no more is not sent', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const id = await deployment.exporter(process);
    await deployment.finish(process.exporters.update(id, { format: 'pagerduty', formatSecret: '0123456789abcdef0123456789abcdef' }));
    await deployment.finish(process.exporters.pause(id));
    const [delivery = ''] = await deployment.publish(process, 1);
    await deployment.finish(process.exporters.update(id, { format: 'native' }));
    await deployment.finish(process.exporters.resume(id));
    await deployment.advance(10 * SECOND);
    t.equal(deployment.posts.length, 0);
    const { history, state } = await process.deliveries.show(delivery);
    t.equal(state, 'exhausted');
    t.match(history, [{ outcome: { code: 'invalid_message', detail: /had a secret, which the exporter has no more$/ } }]);
});
