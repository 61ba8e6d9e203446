import { randomBytes } from 'node:crypto';
import t from 'tap';
import { present } from '../../adapters/contract/assertions.ts';
import { keyRing } from '../../lib/keys/key-ring.ts';
import type { Format } from '../../lib/webhooks/formats/format.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const MINUTE = 60_000;

t.test('deliveries of an exporter whose sealed headers were altered end with the reason, and others go on', async (t) => {
    const deployment = simulatedDeployment(t);
    const key = randomBytes(32);
    const ring = () => keyRing({ current: 'k', keys: { k: key } });
    const host = await deployment.start('host', { keyRing: ring() });
    const [well, altered] = [await deployment.exporter(host), await deployment.exporter(host)];
    await deployment.finish(host.exporters.update(altered, { headers: [['X-Token', 'sealed']] }));
    host.kill();
    // Which has sealed nothing: what it opens shows that its key is the right one.
    const process = await deployment.start('worker', { keyRing: ring() });
    const { sealedHeaders } = present(await deployment.stores.exporters.get(altered));
    await deployment.stores.exporters.update(altered, { sealedHeaders: `${present(sealedHeaders).slice(0, -4)}AAAA` });

    await deployment.publish(process, 3);
    await deployment.advance(MINUTE);
    t.strictSame(await deployment.states(), { delivered: 3, exhausted: 3 });
    for (const { id } of await process.deliveries.list({ exporterId: altered, state: 'exhausted' })) {
        const { attempts, history } = await process.deliveries.show(id);
        t.equal(attempts, 1, 'no try can help');
        t.match(history, [{ outcome: { code: 'invalid_exporter', detail: /it was altered or sealed for something else/ } }]);
    }
    t.equal(deployment.posts.length, 3);
    t.match(await process.exporters.get(well), { state: 'running', consecutiveFailures: 0 });
});

t.test('deliveries of which a format makes a header that the exporter has too end with the reason, and others go on', async (t) => {
    const deployment = simulatedDeployment(t);
    const make: Format['make'] = ({ body, text }) => ({ headers: body.title === '2' ? [['x-team', 'of the format']] : [], body: text });
    const formats = [{ name: 'by-title', contentType: 'text/plain', make }];
    const host = await deployment.start('host', { formats });
    const id = await deployment.exporter(host);
    await deployment.finish(host.exporters.update(id, { format: 'by-title', headers: [['X-Team', 'of the exporter']] }));

    await deployment.publish(host, 3);
    await deployment.advance(MINUTE);
    t.strictSame(await deployment.states(), { delivered: 2, exhausted: 1 });
    t.strictSame(deployment.posts.length, 2);
    const [ended] = await host.deliveries.list({ state: 'exhausted' });
    const { attempts, history } = await host.deliveries.show(present(ended).id);
    t.equal(attempts, 1, 'no try can help');
    t.match(history, [{ outcome: { code: 'invalid_exporter', detail: /Header X-Team is given twice/ } }]);
});
