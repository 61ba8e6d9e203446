import t from 'tap';
import type { StoredExporter } from '../../lib/webhooks/exporters/exporter.ts';
import { INVESTIGATION, simulatedDeployment } from '../support/simulated-deployment.ts';

const SECOND = 1_000;

/** What no operation stores, but a hand in the database may. */
const UNUSABLE: Readonly<Record<string, unknown>> = {
    'kinds that are a number': { kinds: 5 },
    'kinds of numbers': { kinds: [5] },
    'a filter that is a number': { filter: 5 },
    'a filter of an unknown operator': { filter: { path: 'title', op: 'near', value: 1 } },
    'a filter of no list': { filter: { all: { path: 'title', op: 'eq', value: '1' } } },
};

for (const [title, stored] of Object.entries(UNUSABLE)) {
    t.test(`${title} of one exporter keep no event from the others, and are reported once`, async (t) => {
        const deployment = simulatedDeployment(t);
        const process = await deployment.start('only');
        const unusable = await deployment.exporter(process);
        const well = await deployment.exporter(process);
        await deployment.stores.exporters.update(unusable, stored as Partial<StoredExporter>);

        await deployment.publish(process, 3);
        await deployment.publish(process, 3);
        await deployment.advance(SECOND);
        t.strictSame(await deployment.states(), { delivered: 6 });
        t.ok(deployment.posts.every(({ exporterId }) => exporterId === well));
        const reported = process.errors.filter(({ message }) => message.includes(`exporter ${unusable} cannot be used`));
        t.equal(reported.length, 1);

        const explained = process.exporters.explain(unusable, 'idr_investigation_created', { ...INVESTIGATION, title: 'x' });
        t.same(await deployment.finish(explained), { wanted: false, reason: 'Its stored kinds or filter cannot be used' });

        const diagnosis = await deployment.finish(process.doctor());
        t.equal(diagnosis.healthy, false);
        t.match(diagnosis.findings.at(-1), { part: 'exporters', state: 'wrong', values: [unusable], text: RegExp(unusable) });

        await deployment.finish(process.exporters.update(unusable, { kinds: null, filter: null }));
        await deployment.publish(process, 1);
        await deployment.advance(SECOND);
        t.equal(deployment.posts.filter(({ exporterId }) => exporterId === unusable).length, 1, 'once mended, it gets events again');
        t.equal((await deployment.finish(process.doctor())).findings.at(-1)?.code, 'none_stopped');
    });
}
