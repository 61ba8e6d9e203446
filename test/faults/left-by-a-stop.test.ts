import t from 'tap';
import { INVESTIGATION, simulatedDeployment } from '../support/simulated-deployment.ts';

const LARGE = 'x'.repeat(400_000);

t.test('what waits for memory when its worker is stopped is sent at once by another', async (t) => {
    const deployment = simulatedDeployment(t);
    const memory = { maxBodyBytes: 500_000, maxBytesInFlight: 1_000_000 };
    const first = await deployment.start('first', memory);
    await deployment.exporter(first);
    deployment.receive = () => ({ result: 204, after: 8_000 });
    const events = Array.from({ length: 12 }, (_, index) => ({ ...INVESTIGATION, title: `${index}${LARGE}` }));
    await deployment.finish(Promise.all(events.map((event) => first.publish('idr_investigation_created', event))));
    await deployment.advance(4_000);
    const begun = deployment.posts.length;
    t.ok(begun > 0 && begun < 12, `${begun} have begun, and others wait`);

    deployment.receive = () => ({ result: 204 });
    await deployment.start('second', { ...memory, maxBytesInFlight: 10_000_000 });
    const closing = first.close();
    await deployment.advance(300);
    t.strictSame(deployment.posts.filter(({ by }) => by === 'first').length, begun, 'it begins no more');
    t.equal(deployment.posts.length, 12, 'the other has begun all that waited');
    await deployment.finish(closing);
    await deployment.advance(30_000);
    t.equal(deployment.posts.length, 12, 'nothing went out twice');
    t.strictSame(await deployment.states(), { delivered: 12 });
});
