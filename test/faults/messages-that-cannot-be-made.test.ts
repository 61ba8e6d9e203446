import t, { type Test } from 'tap';
import { INVESTIGATION, type SimulatedDeployment, type SimulatedProcess, simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;
/** A template that cannot be filled in from the title {@link UNMADE}. */
const TEMPLATE = { title: '{{ body.title | url_decode }}' };
const UNMADE = '100%';

interface Setting {
    readonly deployment: SimulatedDeployment;
    readonly process: SimulatedProcess;
    /** The exporter. */
    readonly id: string;
    /** An event of this title; resolves with the id of its delivery. */
    publish(title: string): Promise<string>;
}

async function setting(t: Test): Promise<Setting> {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only');
    const id = await deployment.exporter(process);
    await deployment.finish(process.exporters.update(id, { format: 'template', template: TEMPLATE }));
    return {
        deployment,
        process,
        id,
        async publish(title) {
            const { deliveries } = await deployment.finish(process.publish('idr_investigation_created', { ...INVESTIGATION, title }));
            return String(deliveries[0]);
        },
    };
}

t.test('messages that cannot be made end their own deliveries, and no failure of the exporter is counted', async (t) => {
    const { deployment, process, id, publish } = await setting(t);
    const failed = await publish(UNMADE);
    for (let count = 1; count < 15; count += 1) {
        await publish(UNMADE);
        await deployment.advance(SECOND);
    }
    await publish('fine');
    await deployment.advance(SECOND);
    t.strictSame(await deployment.states(), { delivered: 1, exhausted: 15 });
    t.match(await process.exporters.show(id), { state: 'running', consecutiveFailures: 0, health: { breaker: 'closed' } });
    t.equal(deployment.posts.length, 1);

    const { history, attempts } = await process.deliveries.show(failed);
    t.equal(attempts, 1);
    t.match(history, [{ outcome: { code: 'invalid_message', detail: /^Format template: / } }]);
});

t.test('a message that cannot be made uses up no probe', async (t) => {
    const { deployment, process, id, publish } = await setting(t);
    deployment.receive = () => ({ result: 503 });
    for (let count = 1; count <= 10; count += 1) {
        await publish(`lost ${count}`);
        await deployment.advance(200);
    }
    await deployment.advance(SECOND);
    t.match(await process.exporters.show(id), { health: { breaker: 'open' } });
    for (let count = 1; count <= 5; count += 1) {
        await publish(UNMADE);
    }
    deployment.receive = () => ({ result: 204 });
    const before = deployment.posts.length;
    await deployment.advance(6 * SECOND);
    t.ok(deployment.posts.length > before, 'the first probe reaches the receiver');
    await deployment.advance(60 * SECOND);
    t.strictSame(await deployment.states(), { delivered: 10, exhausted: 5 });
});

t.test('a replay sends what was made when the event was accepted, also after the template was mended', async (t) => {
    const { deployment, process, id, publish } = await setting(t);
    const failed = await publish(UNMADE);
    await deployment.advance(SECOND);
    await deployment.finish(process.exporters.update(id, { template: { title: '{{ body.title }}' } }));
    await deployment.finish(process.deliveries.replay(failed));
    await deployment.advance(SECOND);
    t.match(await process.deliveries.show(failed), { state: 'exhausted', attempts: 2, lastCode: 'invalid_message' });
    t.match(await process.exporters.show(id), { consecutiveFailures: 0 });

    await publish(UNMADE);
    await deployment.advance(SECOND);
    t.strictSame(
        deployment.posts.map(({ title }) => title),
        [UNMADE],
    );
});
