import t, { type Test } from 'tap';
import type { DeliveryQueue } from '../../lib/webhooks/dispatching/delivery-queue.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { type Embedding, embedding } from '../support/embedding-host.ts';
import { linesOf, nextJson, scanwire, startScanwire } from '../support/scanwire.ts';

const ARGS = ['worker', '--collector', 'edge', '--json'];

/** Whether a worker with this environment gets the `test` of an exporter on its collector. */
async function assertGets(t: Test, application: Embedding, queue: DeliveryQueue, env: Readonly<Record<string, string>>) {
    const receiver = await countingReceiver(t, (response) => response.writeHead(204).end());
    const { server } = await application.host({ queue });
    const worker = startScanwire(ARGS, { env });
    t.teardown(() => worker.kill('SIGKILL'));
    await nextJson(worker, linesOf(worker));
    const { exporters } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url, collector: 'edge' });
    t.match(await exporters.start(exporter.id), { test: { attempt: { outcome: { code: 'delivered' } } } });
}

t.test('a worker finds the jobs of a host that has a prefix of its own', async (t) => {
    const application = await embedding(t);
    await assertGets(t, application, application.redis('acme'), application.env);
});

t.test('a worker finds the jobs of a host that has them in PostgreSQL, and looks nowhere else', async (t) => {
    const application = await embedding(t);
    const { REDIS_URL: _, ...env } = application.env;
    await assertGets(t, application, application.postgres(), env);

    const { code, stderr } = await scanwire(ARGS, { env: application.env });
    t.equal(code, 1);
    t.match(JSON.parse(stderr).error, { code: 'MISCONFIGURED', message: /queue is "Redis" here and "PostgreSQL" in the store$/ });
});

t.test('a worker before its host is told to wait for it, whatever it knows of a queue', async (t) => {
    const application = await embedding(t);
    const { REDIS_URL: _, ...env } = application.env;
    const early = {
        code: 'MISCONFIGURED',
        message: /^No host has stored its settings yet: start the host first$/,
    };
    t.match(JSON.parse((await scanwire(ARGS, { env })).stderr).error, early);
    t.match(JSON.parse((await scanwire(ARGS, { env: application.env })).stderr).error, early);
});
