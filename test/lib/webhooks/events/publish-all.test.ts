import t from 'tap';
import { postgresWebhooks, transaction } from '../../../../adapters/postgres/index.ts';
import { migratedMemory } from '../../../support/migrated-database.ts';
import { recordingProcess } from '../../../support/recording-process.ts';
import { INVESTIGATION } from '../../../support/simulated-deployment.ts';

t.test('publishes many events in a transaction of the application, by one statement: all if it commits, else none', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const { deliveries, ...stores } = postgresWebhooks({ pool });
    const accepted: number[] = [];
    const accept: typeof deliveries.accept = (newEvents, options) => {
        accepted.push(newEvents.length);
        return deliveries.accept(newEvents, options);
    };
    const self = recordingProcess(t, { ...stores, deliveries: { ...deliveries, accept } });
    for (const settings of [{}, { kinds: ['idr_*'] }]) {
        const { exporter } = await self.exporters.create({ url: 'https://receiver.example/', ...settings });
        await stores.exporters.update(exporter.id, { state: 'running' });
    }
    const events = ['one', 'two', 'three'].map((title) => ({
        kind: 'idr_investigation_created' as const,
        body: { ...INVESTIGATION, title },
    }));
    const published = async () => (await self.deliveries.list({ limit: 100 })).filter(({ kind }) => kind !== 'test').length;

    const undone = transaction(pool, async (tx) => {
        t.equal((await self.publishAll(events, { tx })).length, 3);
        throw new RangeError('The application changed its mind');
    });
    await t.rejects(undone, RangeError);
    t.same([accepted.splice(0), await published()], [[3], 0], 'nothing of what was rolled back');

    const all = await transaction(pool, (tx) => self.publishAll(events, { tx }));
    t.same([accepted.splice(0), await published()], [[3], 6], 'one delivery of each event for each exporter');
    t.equal(new Set(all.map(({ eventId }) => eventId)).size, 3);
    const bodies = await Promise.all(all.map(({ deliveries: [id] }) => self.deliveries.message(String(id))));
    t.same(
        bodies.map(({ body }) => JSON.parse(String(body)).title),
        ['one', 'two', 'three'],
        'in their order',
    );

    await t.rejects(self.publishAll(events, { tx: pool }), { code: 'MISCONFIGURED', field: 'tx', message: /a pool is no transaction/ });
    t.same([accepted, await published()], [[], 6]);
});
