import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import type { InvestigationCreated } from '../../../../lib/webhooks/events/event-body-types.ts';
import { newProgress, outcomeOf } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { recordingProcess, taken } from '../../../support/recording-process.ts';
import { INVESTIGATION, simulatedDeployment } from '../../../support/simulated-deployment.ts';

const KIND = 'idr_investigation_created';
const failed = outcomeOf({ code: 'server_error', status: 500, detail: 'Answered 500', retryAfter: null }, newProgress(), 1);

function titled(title: string): InvestigationCreated {
    return { ...INVESTIGATION, title };
}

t.test('sends the events of a key one after another, and waits for no poll between them', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    await deployment.finish(process.exporters.update(await deployment.exporter(process), { ordered: true }));
    const titles = Array.from({ length: 30 }, (_, number) => `${number}`);
    const takes = 50;
    deployment.receive = () => ({ result: 204, after: takes });
    await process.publishAll(titles.slice(0, 15).map((title) => ({ kind: KIND, body: titled(title), orderKey: 'a' })));
    await Promise.all(titles.slice(15).map((title) => process.publish(KIND, titled(title), { orderKey: 'a' })));
    // A poll is a second.
    await deployment.advance(5_000);
    t.strictSame(await deployment.states(), { delivered: 30 });
    t.same(
        deployment.posts.map(({ title }) => title),
        titles,
    );
    const gaps = deployment.posts.map(({ at }, index) => at - (deployment.posts[index - 1]?.at ?? Number.NEGATIVE_INFINITY));
    t.ok(Math.min(...gaps) >= takes, `each begins when the one before has ended: ${gaps.join()}`);
});

t.test('lets one that fails hold back its own key alone', async (t) => {
    const process = recordingProcess(t, memoryWebhooks(), {}, async () => {
        return String(process.sent.at(-1)?.body).includes('"title":"bad"') ? failed : taken;
    });
    await process.start();
    await process.work(['default']);
    const { exporter } = await process.exporters.create({ url: 'https://receiver.example/', ordered: true, afterExhausted: 'hold' });
    t.match(exporter, { ordered: true, afterExhausted: 'hold' });
    await process.exporters.start(exporter.id);
    const keyed = (title: string, orderKey: string) => ({ kind: KIND, body: titled(title), orderKey });
    await process.publishAll([keyed('bad', 'a'), keyed('behind', 'a'), keyed('other', 'b')]);
    await until(async () => (await process.deliveries.list({ state: 'delivered' })).length === 2);
    await until(async () => (await process.deliveries.count({ outcome: 'server_error' })).count === 1);
    t.notOk(process.sent.some(({ body }) => String(body).includes('"title":"behind"')));
});

t.test('refuses keys that cannot be, and stores nothing then', async (t) => {
    const process = recordingProcess(t, memoryWebhooks());
    const refused = { code: 'INVALID_INPUT', field: 'orderKey', message: /Order key|orderKey/ };
    await t.rejects(process.publish(KIND, titled('x'), { orderKey: '' }), refused);
    await t.rejects(process.publish(KIND, titled('x'), { orderKey: 'x'.repeat(201) }), refused);
    const events = [
        { kind: KIND, body: titled('x') },
        { kind: KIND, body: titled('x'), orderKey: 1 as unknown as string },
    ];
    await t.rejects(process.publishAll(events), { code: 'INVALID_INPUT', field: '[1].orderKey' });
    await t.rejects(process.exporters.create({ url: 'https://receiver.example/', afterExhausted: 'wait' as 'hold' }), {
        code: 'INVALID_INPUT',
        field: 'afterExhausted',
    });
    t.same(await process.exporters.list(), []);
});

t.test('says that a store keeps no order', async (t) => {
    const { deliveries, ...stores } = memoryWebhooks();
    const { ordered: _, ...without } = deliveries;
    const process = recordingProcess(t, { ...stores, deliveries: without });
    await t.rejects(process.publish(KIND, titled('x'), { orderKey: 'a' }), { code: 'MISCONFIGURED', field: 'orderKey' });
    await t.rejects(process.exporters.create({ url: 'https://receiver.example/', ordered: true }), {
        code: 'MISCONFIGURED',
        field: 'ordered',
    });
    const { exporter } = await process.exporters.create({ url: 'https://receiver.example/' });
    await t.rejects(process.exporters.update(exporter.id, { ordered: true }), { code: 'MISCONFIGURED', field: 'ordered' });
});
