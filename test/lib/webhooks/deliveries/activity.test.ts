import t from 'tap';
import { sampleEvent, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { activityOf } from '../../../../lib/webhooks/deliveries/activity.ts';
import type { WebhooksContext } from '../../../../lib/webhooks/webhooks-context.ts';

const NOW = new Date('2026-11-21T09:31:07Z');

function looked(clock = () => NOW) {
    const stores = memoryWebhooks({ clock });
    return { ...stores, activity: activityOf(stores as unknown as WebhooksContext) };
}

t.test('goes back an hour in slices of five minutes, or a day in hours, between round times', async (t) => {
    const { activity } = looked();
    const hour = await activity();
    t.equal(hour.slices.length, 12);
    t.match(hour.slices[0], { since: new Date('2026-11-21T08:35:00Z'), until: new Date('2026-11-21T08:40:00Z') });
    t.match(hour.slices.at(-1), { since: new Date('2026-11-21T09:30:00Z'), until: new Date('2026-11-21T09:35:00Z') });
    t.equal(hour.at, NOW);
    const day = await activity({ span: 'day' });
    t.equal(day.slices.length, 24);
    t.match(day.slices[0], { since: new Date('2026-11-20T10:00:00Z'), until: new Date('2026-11-20T11:00:00Z') });
    t.match(day.slices.at(-1), { since: new Date('2026-11-21T09:00:00Z'), deliveries: 0, more: false, latency: null });
});

t.test('says where there may be more than were looked at, and of an exporter alone', async (t) => {
    const { activity, exporters, deliveries } = looked();
    const exporter = sampleExporter();
    await exporters.insert(exporter);
    const recipients = { exporterId: exporter.id };
    await deliveries.accept(Array.from({ length: 999 }, () => ({ event: sampleEvent(), recipients })));
    t.match((await activity()).slices.at(-1), { deliveries: 999, more: false });
    await deliveries.accept([1, 2].map(() => ({ event: sampleEvent(), recipients })));
    t.match((await activity()).slices.at(-1), { deliveries: 1_000, more: true });
    t.match((await activity({ exporterId: 'another' })).slices.at(-1), { deliveries: 0 });
});

t.test('refuses what it does not know, and a store that does not count', async (t) => {
    const { activity, deliveries } = looked();
    await t.rejects(activity({ span: 'week' as 'day' }), { code: 'INVALID_INPUT', field: 'span' });
    const { activity: _, ...others } = deliveries;
    const without = activityOf({ deliveries: others } as unknown as WebhooksContext);
    const { filtersByExporters: __, ...unfiltered } = deliveries;
    const all = activityOf({ deliveries: unfiltered } as unknown as WebhooksContext);
    t.equal((await all()).slices.length, 12);
    await t.rejects(all({ exporterIds: [] }), { code: 'MISCONFIGURED' });
    await t.rejects(activity({ exporterIds: [], exporterId: 'a' }), { code: 'INVALID_INPUT' });
    await t.rejects(without(), { code: 'MISCONFIGURED', message: /^Cannot show what became of deliveries/ });
});
