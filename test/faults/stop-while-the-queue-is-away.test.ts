import t from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { ScanwireError } from '../../lib/errors.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

t.test('what is being sent gets its time when jobs cannot be added at a stop', async (t) => {
    const deployment = simulatedDeployment(t);
    const queue = memoryQueue();
    let away = false;
    const add: typeof queue.add = async (jobs) => {
        if (away) {
            throw new ScanwireError('UNAVAILABLE', 'The queue is away');
        }
        await queue.add(jobs);
    };
    const process = await deployment.start('a', { queue: { ...queue, add } });
    await deployment.exporter(process);
    deployment.receive = () => ({ result: 204, after: 8_000 });
    await deployment.publish(process, 1);
    await deployment.advance(1_000);
    away = true;
    await deployment.publish(process, 1);
    await deployment.advance(1_000);

    const closing = process.close();
    await deployment.advance(2_000);
    t.strictSame(await deployment.states(), { sending: 1, queued: 1 }, 'it is not given up');
    await deployment.finish(closing);
    t.strictSame(await deployment.states(), { delivered: 1, queued: 1 });
    t.equal(deployment.posts.length, 1);
    t.match(process.errors.at(-1), { message: 'The queue is away' });
});
