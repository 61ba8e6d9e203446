import t, { type Test } from 'tap';
import type { Claim } from '../../lib/webhooks/deliveries/delivery-store.ts';
import type { Format } from '../../lib/webhooks/formats/format.ts';
import { type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;
const LINE: Format = {
    name: 'line',
    contentType: 'application/json',
    make: ({ body }) => ({ body: JSON.stringify({ title: `line of ${(body as { title: string }).title}` }) }),
};

/** A process without a format that its application has dropped, and an exporter that has it still. */
async function dropped(t: Test) {
    const deployment = simulatedDeployment(t);
    const having = await deployment.start('having', { formats: [LINE] });
    const id = await deployment.exporter(having);
    await deployment.finish(having.exporters.update(id, { format: 'line' }));
    await deployment.finish(having.close());
    const warnings: string[] = [];
    const lacking = await deployment.start('lacking', { onWarning: (message) => warnings.push(message) });
    return { deployment, lacking, warnings, id };
}

/** Processes that start from now on read claims otherwise. */
function claiming({ stores: { deliveries } }: SimulatedDeployment, change: (claim: Claim) => Claim): void {
    const { claim } = deliveries;
    Object.assign(deliveries, {
        claim: async (...given: Parameters<typeof claim>) => (await claim(...given)).map((one) => one && change(one)),
    });
}

/** As if the event had been accepted a day earlier. */
function aged({ event, ...claim }: Claim): Claim {
    return { ...claim, event: { ...event, createdAt: new Date(event.createdAt.getTime() - 24 * HOUR) } };
}

t.test('what nobody can make ends a day after its event, and may be replayed', async (t) => {
    const { deployment, lacking, id } = await dropped(t);
    const [delivery = ''] = await deployment.publish(lacking, 1);
    await deployment.advance(23 * HOUR);
    t.match(await lacking.deliveries.show(delivery), { state: 'pending', lastCode: 'interrupted' });
    await deployment.advance(HOUR + 2 * MINUTE);
    const { state, history } = await lacking.deliveries.show(delivery);
    t.equal(state, 'exhausted');
    const detail = 'Format line: no process that was to send this has the format';
    t.match(history.at(-1), { outcome: { code: 'invalid_message', detail } });
    t.match(await lacking.exporters.show(id), { consecutiveFailures: 0, health: { breaker: 'closed' } });

    await deployment.finish(lacking.close());
    const again = await deployment.start('again', { formats: [LINE] });
    await again.deliveries.replay(delivery);
    await deployment.advance(MINUTE);
    t.strictSame(await deployment.states(), { delivered: 1 });
    t.match(deployment.posts, [{ title: 'line of 1' }]);
});

t.test('what waited for a day is tried some times all the same, since the next process may have the format', async (t) => {
    const { deployment, lacking, id } = await dropped(t);
    await deployment.finish(lacking.exporters.pause(id));
    const [delivery = ''] = await deployment.publish(lacking, 1);
    await deployment.finish(lacking.close());
    claiming(deployment, aged);
    const late = await deployment.start('late', { onWarning: () => undefined });
    await deployment.finish(late.exporters.resume(id));
    await deployment.advance(MINUTE);
    t.match(await late.deliveries.show(delivery), { state: 'pending', lastCode: 'interrupted' });
    await deployment.advance(10 * MINUTE);
    const { state, history } = await late.deliveries.show(delivery);
    t.strictSame([state, history.length], ['exhausted', 10]);
});

t.test('what another process has made is not given up where this one has read it before', async (t) => {
    const { deployment, lacking } = await dropped(t);
    const [delivery = ''] = await deployment.publish(lacking, 1);
    await deployment.finish(lacking.close());
    const { deliveries } = deployment.stores;
    const message = (await deliveries.content?.(delivery))?.message ?? null;
    const made = { contentType: 'application/json', headers: [], body: '{"title":"made"}', failure: null };
    await deliveries.messages?.keep(delivery, made, message?.failure ?? '');
    claiming(deployment, (claim) => ({ ...aged(claim), attempt: 10, message }));
    await deployment.start('late', { onWarning: () => undefined });
    await deployment.advance(MINUTE);
    t.match(deployment.posts, [{ title: 'made' }]);
});

t.test('a process says once of an exporter that it does not have the format', async (t) => {
    const { deployment, lacking, warnings, id } = await dropped(t);
    await deployment.publish(lacking, 3);
    await deployment.advance(10 * MINUTE);
    t.strictSame(warnings, [
        `Exporter ${id} has the format line, which this process does not have: what was accepted without it waits for a process that has it, for a day`,
    ]);
});
