import t from 'tap';
import { memoryQueue } from '../../adapters/memory/index.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

/** What is waited for until it is let through. */
function gate(): { readonly passed: Promise<void>; open(): void } {
    let open = (): void => undefined;
    const passed = new Promise<void>((resolve) => {
        open = resolve;
    });
    return { passed, open };
}

t.test('what a worker has taken before it is known to have begun is finished by a stop', async (t) => {
    const deployment = simulatedDeployment(t);
    const { passed, open } = gate();
    const queue = memoryQueue();
    const work: typeof queue.work = async (collector, ...rest) => {
        const worker = await queue.work(collector, ...rest);
        await (collector === 'other' ? passed : null);
        return worker;
    };
    const process = await deployment.start('a', { queue: { ...queue, work } });
    const { exporter } = await process.exporters.create({ url: 'http://127.0.0.1/', collector: 'other' });
    const working = process.work(['other', 'third']);
    await deployment.finish(process.exporters.start(exporter.id));
    deployment.receive = () => ({ result: 204, after: 5_000 });
    await deployment.publish(process, 1);
    await deployment.advance(1_000);
    t.equal(deployment.posts.length, 1);

    const closing = process.close();
    await deployment.advance(100);
    open();
    await deployment.finish(Promise.all([working, closing]));
    t.strictSame(await deployment.states(), { delivered: 1 });

    await deployment.publish(process, 1);
    await deployment.advance(10_000);
    t.equal(deployment.posts.length, 1, 'it takes nothing more');
    t.strictSame(await deployment.stores.deliveries.sessions(), []);
});

t.test('a process that is stopped while it begins to work has no session', async (t) => {
    const deployment = simulatedDeployment(t);
    const { passed, open } = gate();
    const { deliveries } = deployment.stores;
    let held = false;
    const sessions: typeof deliveries.sessions = async () => {
        await (held ? passed : null);
        return await deliveries.sessions();
    };
    const process = await deployment.start('a', { deliveries: { ...deliveries, sessions } });
    await deployment.finish(process.close());
    await deployment.finish(process.start());
    held = true;
    const working = process.work(['default']);
    await deployment.advance(100);
    const closing = process.close();
    await deployment.advance(100);
    open();
    await deployment.finish(Promise.all([working, closing]));
    await deployment.advance(20_000);
    t.strictSame(await deliveries.sessions(), []);
});
