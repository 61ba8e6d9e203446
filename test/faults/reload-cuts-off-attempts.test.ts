import t, { type Test } from 'tap';
import { type PoolLike, postgresWebhooks } from '../../adapters/postgres/index.ts';
import type { WebhookExporterOptions } from '../../plugins/webhook-exporter/options.ts';
import { countingReceiver } from '../support/counting-receiver.ts';
import { embedding } from '../support/embedding-host.ts';
import { ended, endedWithin, linesOf, nextJson, startScanwire } from '../support/scanwire.ts';
import { INVESTIGATION, simulatedDeployment } from '../support/simulated-deployment.ts';

const KIND = 'idr_investigation_created';

/** A worker that has a message in hand, which the receiver answers after so many milliseconds, when the settings change. */
async function reloaded(t: Test, answerAfter: number, options: Partial<WebhookExporterOptions>, ...more: string[]) {
    const receiver = await countingReceiver(t, (response) => {
        setTimeout(() => response.writeHead(204).end(), answerAfter).unref();
    });
    const application = await embedding(t);
    const { server } = await application.host(options);
    const worker = startScanwire(['worker', '--collector', 'default', '--json', ...more], { env: application.env });
    t.teardown(() => worker.kill('SIGKILL'));
    const lines = linesOf(worker);
    await nextJson(worker, lines);
    const { exporters, publish, deliveries } = server.plugins['webhook-exporter'];
    const { exporter } = await exporters.create({ url: receiver.url });
    await exporters.start(exporter.id);
    const accepted = await publish(KIND, { ...INVESTIGATION, title: 'Slow' });
    await receiver.received(KIND);
    const outdated = new Promise<void>((resolve) => worker.stderr?.once('data', () => resolve()));
    await application.host({ ...options, vendor: 'Newer' });
    await outdated;
    return { receiver, worker, lines, application, history: async () => (await deliveries.show(accepted.deliveries[0] ?? '')).history };
}

t.test('a worker that begins again finishes what it holds, however long an attempt may take', async (t) => {
    const { receiver, worker, lines, history } = await reloaded(t, 23_000, { attemptTimeout: 30_000 }, '--drain-timeout', '1');
    t.match(await nextJson(worker, lines), { generation: 2 });
    t.match(await history(), [{ number: 1, outcome: { code: 'delivered' } }]);
    t.strictSame(receiver.kinds, ['test', KIND]);
    t.equal(await ended(worker, 'SIGTERM'), 0);
});

t.test('a stop meanwhile takes no longer than it may, and gives back what is not finished', async (t) => {
    const { worker, application, history } = await reloaded(t, 60_000, {}, '--drain-timeout', '3');
    const { code, late } = await endedWithin(worker, 3);
    t.equal(code, 0);
    t.ok(late < 0.5, `ended ${late} s late`);
    t.match(await history(), [{ number: 1, outcome: { code: 'interrupted' } }]);
    const sessions = await postgresWebhooks({ pool: application.pool as PoolLike }).deliveries.sessions();
    t.strictSame(
        sessions.filter(({ process }) => JSON.parse(process).pid === worker.pid),
        [],
    );
});

t.test('a later and shorter close brings the end of an earlier one forward', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('a');
    await deployment.exporter(process);
    deployment.receive = () => ({ result: 204, after: 600_000 });
    await deployment.publish(process, 1);
    await deployment.advance(1_000);
    t.strictSame(await deployment.states(), { sending: 1 });

    const startedAt = deployment.now();
    const closing = process.close({ timeout: 60_000 });
    await deployment.finish(process.close({ timeout: 900 }));
    await deployment.finish(closing);
    t.ok(deployment.now() - startedAt < 2_000, 'both have ended');
    t.ok(deployment.now() - startedAt > 500, 'and what was being sent had its time');
    t.strictSame(await deployment.stores.deliveries.sessions(), []);
});
