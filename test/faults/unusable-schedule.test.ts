import t from 'tap';
import type { StoredExporter } from '../../lib/webhooks/exporters/exporter.ts';
import { simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;

/** What no operation stores, but a hand in the database may. */
const UNUSABLE: readonly unknown[] = [[1e300], ['x'], [null], [-5_000], 5, {}];

for (const schedule of UNUSABLE) {
    t.test(`the schedule ${JSON.stringify(schedule)} ends the deliveries that need it with the reason, and no others`, async (t) => {
        const deployment = simulatedDeployment(t);
        const process = await deployment.start('only');
        const unusable = await deployment.exporter(process);
        const well = await deployment.exporter(process);
        await deployment.stores.exporters.update(unusable, { schedule } as unknown as Partial<StoredExporter>);

        await deployment.publish(process, 2);
        await deployment.advance(SECOND);
        t.strictSame(await deployment.states(), { delivered: 4 }, 'which is not asked for when the first try is taken');

        deployment.receive = () => ({ result: 503 });
        await deployment.publish(process, 2);
        await deployment.advance(SECOND);
        t.strictSame(await deployment.states(), { delivered: 4, exhausted: 2, pending: 2 });
        for (const { id } of await process.deliveries.list({ exporterId: unusable, state: 'exhausted' })) {
            const { history } = await process.deliveries.show(id);
            t.match(history, [
                { outcome: { code: 'invalid_exporter', status: 503, detail: /503; the stored schedule of the exporter is not/ } },
            ]);
        }
        const shown = await process.exporters.get(unusable);
        t.match(shown, { state: 'running', consecutiveFailures: 1 }, 'what the receiver did counts all the same');
        t.notOk('schedule' in shown, 'nobody is shown as a schedule what is none');
        t.strictSame(
            process.errors.filter(({ message }) => !message.startsWith('The clock')),
            [],
        );
        t.equal(deployment.posts.filter(({ exporterId }) => exporterId === well).length, 4);
    });
}
