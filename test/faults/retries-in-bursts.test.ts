import t from 'tap';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const EVENTS = 150;

t.test('what failed together and is due again together does not begin together', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { window: EVENTS });
    await deployment.exporter(process);
    const seen = new Set<string>();
    deployment.receive = ({ title }) => {
        const isFirst = !seen.has(title);
        seen.add(title);
        return { result: isFirst ? 500 : 204, after: 900 };
    };
    await deployment.publish(process, EVENTS);
    await deployment.advance(900);
    t.equal(deployment.posts.length, EVENTS);

    await deployment.advance(60_000);
    const again = deployment.posts.slice(EVENTS).map(({ at }) => at);
    t.equal(again.length, EVENTS, 'all are tried again');
    const together = Math.max(...again.map((at) => again.filter((other) => other >= at && other < at + 10).length));
    t.ok(together <= 12, `${together} within 10 ms`);
    t.ok(Math.max(...again) - Math.min(...again) <= 3_000, 'and soon after one another');
});

t.test('what has its turn yet is not sent any more once its receiver is gone', async (t) => {
    const deployment = simulatedDeployment(t);
    const process = await deployment.start('only', { window: EVENTS });
    await deployment.exporter(process);
    deployment.receive = ({ at }) => (at < 900 ? { result: 500, after: 900 } : { result: 410, after: 20 });
    await deployment.publish(process, EVENTS);
    await deployment.advance(60_000);
    const again = deployment.posts.slice(EVENTS).map(({ at }) => at);
    const gone = (again[0] ?? Number.NaN) + 20;
    t.ok(again.length > 0 && again.length < EVENTS, `${again.length} were sent`);
    t.equal(again.filter((at) => at > gone + 5).length, 0, 'none of them after it had said so');
});
