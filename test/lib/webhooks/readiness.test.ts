import { mock } from 'node:test';
import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import { type Phase, readinessCheck, watchedQueue } from '../../../lib/webhooks/readiness.ts';
import { simulatedDeployment } from '../../support/simulated-deployment.ts';

const READY = { ready: true, reasons: [] };

t.test('a process is ready while it sends, and says why when it is not', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('a');
    t.strictSame(await process.readiness(), READY);

    deployment.storeIsAway = true;
    t.strictSame(await process.readiness(), {
        ready: false,
        reasons: [{ part: 'store', code: 'UNAVAILABLE', message: 'The store is away' }],
    });
    deployment.storeIsAway = false;

    const closing = process.close();
    t.match(await process.readiness(), { ready: false, reasons: [{ part: 'process', code: 'DRAINING' }] });
    await deployment.finish(closing);
    await process.start();
    t.strictSame(await process.readiness(), READY);
    await deployment.finish(process.close());
});

t.test('a queue that fails in use is away until it can be used again', async (t) => {
    let fails: Error | null = null;
    const used = async (): Promise<never | undefined> => {
        if (fails !== null) {
            throw fails;
        }
        return undefined;
    };
    const queue = {
        ready: used,
        add: used,
        lostJobs: async () => (await used()) ?? false,
        work: async () => ({ close: used }),
        close: used,
    };
    const watched = watchedQueue(queue);
    const check = readinessCheck(memoryWebhooks().deliveries, watched, () => 'running');
    t.strictSame(await check(), READY);

    fails = new Error('connect to redis://user:secret@10.0.0.1');
    await t.rejects(watched.queue.add([]));
    t.strictSame(await check(), {
        ready: false,
        reasons: [{ part: 'queue', code: 'UNAVAILABLE', message: 'Cannot use the queue now' }],
    });
    fails = new ScanwireError('MISCONFIGURED', 'Redis refused the user or the password');
    await t.rejects(watched.queue.ready());
    t.match(await check(), { reasons: [{ part: 'queue', code: 'MISCONFIGURED', message: 'Redis refused the user or the password' }] });
    fails = null;
    await watched.queue.lostJobs?.();
    t.strictSame(await check(), READY);
});

t.test('a store that is silent is asked once for all who wait, for two seconds', async (t) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    let asked = 0;
    const now = (): Promise<Date> => {
        asked += 1;
        return new Promise(() => undefined);
    };
    const check = readinessCheck({ now }, watchedQueue(memoryQueue()), (): Phase => 'starting');
    const answering = Promise.all([check(), check(), check()]);
    mock.timers.tick(2_000);
    const answers = await answering;
    t.equal(asked, 1);
    for (const answer of answers) {
        t.match(answer.reasons, [
            { part: 'store', message: 'The store has not answered within 2000 ms' },
            { part: 'process', code: 'STARTING' },
        ]);
    }
});
