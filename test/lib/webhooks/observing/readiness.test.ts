import { mock } from 'node:test';
import t from 'tap';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import { type Phase, readinessCheck, watchedQueue } from '../../../../lib/webhooks/observing/readiness.ts';
import { simulatedDeployment } from '../../../support/simulated-deployment.ts';

const READY = { ready: true, reasons: [] };

t.test('a process is ready while it sends, and says why when it is not', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('a');
    t.strictSame(await process.readiness(), READY);

    deployment.storeIsAway = true;
    t.strictSame(await process.readiness(), {
        ready: false,
        reasons: [{ part: 'store', code: 'UNAVAILABLE', message: 'The store does not answer' }],
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
        hasLostJobs: async () => (await used()) ?? false,
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
        reasons: [
            {
                part: 'queue',
                code: 'UNAVAILABLE',
                message: 'The server of the queue is away: events are accepted, and delivered when it is back',
            },
        ],
    });
    fails = new ScanwireError('MISCONFIGURED', 'The server 10.0.0.1 of redis://user:secret@10.0.0.1 refused the password');
    await t.rejects(watched.queue.ready());
    t.strictSame((await check()).reasons, [
        { part: 'queue', code: 'MISCONFIGURED', message: 'The queue gets no jobs as its server is set up: the log says why' },
    ]);
    fails = new ScanwireError('CONFLICT', 'Something of 10.0.0.1');
    await t.rejects(watched.queue.ready());
    t.match(await check(), { reasons: [{ part: 'queue', code: 'UNAVAILABLE', message: /^The server of the queue is away/ }] });
    fails = null;
    await watched.queue.add([]);
    t.match(await check(), { ready: false }, 'a worker of this process may have taken all of it');
    await watched.queue.hasLostJobs?.();
    t.strictSame(await check(), READY);
});

t.test('a store that is silent is asked once for all who ask, each of whom waits for two seconds', async (t) => {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
    let asked = 0;
    let answer = (_: Date): void => undefined;
    const now = (): Promise<Date> => {
        asked += 1;
        return new Promise((resolve) => {
            answer = resolve;
        });
    };
    const check = readinessCheck({ now }, watchedQueue(memoryQueue()), (): Phase => 'starting');
    for (let round = 0; round < 5; round += 1) {
        const answering = Promise.all([check(), check(), check()]);
        mock.timers.tick(2_000);
        for (const { reasons } of await answering) {
            t.match(reasons, [
                { part: 'store', code: 'UNAVAILABLE' },
                { part: 'process', code: 'STARTING' },
            ]);
        }
    }
    t.equal(asked, 1, 'what is open is not asked once more');

    answer(new Date());
    await new Promise(setImmediate);
    const answering = check();
    answer(new Date());
    t.match((await answering).reasons, [{ code: 'STARTING' }]);
    t.equal(asked, 2);
});

t.test('a host that another one has overtaken is ready, as it accepts, and says what it does not do', async (t) => {
    const deployment = simulatedDeployment(t);
    const older = await deployment.start('older');
    const newer = await deployment.start('newer', { window: 60 });
    await deployment.advance(2_500);
    t.match(await older.readiness(), { ready: true, reasons: [{ part: 'process', code: 'CONFLICT' }] });
    t.strictSame(await newer.readiness(), READY);
    deployment.storeIsAway = true;
    t.match(await older.readiness(), { ready: false });
});
