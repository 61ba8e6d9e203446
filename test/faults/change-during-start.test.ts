import t, { type Test } from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { type SimulatedDeployment, simulatedDeployment } from '../support/simulated-deployment.ts';

/** A host whose queue lets it wait at the start until another host has changed the settings. */
async function overtaken(t: Test, reached: () => Promise<void>) {
    const deployment: SimulatedDeployment = simulatedDeployment(t);
    let asked = 0;
    let answer = (): void => undefined;
    const answering = new Promise<void>((resolve) => {
        answer = resolve;
    });
    const ready = async (): Promise<void> => {
        asked += 1;
        await answering;
        await reached();
    };
    const outdated: string[] = [];
    const queue = memoryQueue();
    const starting = deployment.start('older', { queue: { ...queue, ready }, onOutdated: () => outdated.push('older') });
    await deployment.advance(100);
    const newer = await deployment.start('newer', { window: 60 });
    await deployment.advance(2_500);
    t.strictSame(outdated, ['older']);
    answer();
    return { deployment, newer, older: await starting, asked: () => asked };
}

const CONFLICT = { part: 'process', code: 'CONFLICT' };

t.test('a host whose settings are changed while it starts has started, as the older one', async (t) => {
    const { deployment, older, newer } = await overtaken(t, async () => undefined);
    t.match(await older.readiness(), { reasons: [CONFLICT] });
    await deployment.exporter(newer);
    await deployment.publish(older, 5);
    await deployment.advance(1_000);
    t.strictSame(await deployment.states(), { delivered: 5 });
    t.ok(deployment.posts.every(({ by }) => by === 'newer'));
    await deployment.finish(older.close());
    await deployment.finish(newer.close());
});

t.test('and looks for its queue no more', async (t) => {
    const { deployment, older, asked } = await overtaken(t, async () => {
        throw new ScanwireError('UNAVAILABLE', 'The queue is away');
    });
    await deployment.advance(1_000);
    t.equal(asked(), 1);
    t.match(await older.readiness(), { reasons: [{ part: 'queue' }, CONFLICT] });
});
