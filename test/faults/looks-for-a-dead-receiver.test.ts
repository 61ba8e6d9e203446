import t from 'tap';
import { countedLooks, INVESTIGATION, simulatedDeployment } from '../support/simulated-deployment.ts';

t.test('events for a receiver that is down are not looked for each by itself, and all go out when it is back', async (t) => {
    const deployment = simulatedDeployment(t);
    const looks = countedLooks(deployment);
    const host = await deployment.start('only', { breakerAfter: 3 });
    const id = await deployment.exporter(host);
    let isDown = true;
    deployment.receive = () => ({ result: isDown ? 500 : 204 });
    await deployment.publish(host, 5);
    await deployment.advance(1_500);

    looks.count = 0;
    for (let event = 0; event < 200; event += 1) {
        await host.publish('idr_investigation_created', { ...INVESTIGATION, title: `down ${event}` });
        await deployment.advance(20);
    }
    t.ok(looks.count <= 30, `${looks.count} looks in 4 s, of which 4 are polls, for 200 events`);

    isDown = false;
    await deployment.advance(600_000);
    const delivered = await deployment.stores.deliveries.list({
        exporterId: id,
        state: 'delivered',
        kind: 'idr_investigation_created',
        limit: 1_000,
    });
    t.equal(delivered.length, 205);
});
