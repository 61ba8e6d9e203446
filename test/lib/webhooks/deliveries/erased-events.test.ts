import { randomUUID } from 'node:crypto';
import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import { sampleEvent, sampleExporter } from '../../../../adapters/contract/webhooks/fixture.ts';
import { memoryQueue, memoryWebhooks } from '../../../../adapters/memory/index.ts';
import { postgresWebhooks } from '../../../../adapters/postgres/index.ts';
import type { DeliveryJob, DeliveryQueue } from '../../../../lib/webhooks/dispatching/delivery-queue.ts';
import { RESERVATION_TIMES } from '../../../../lib/webhooks/dispatching/reservations.ts';
import type { Outcome } from '../../../../lib/webhooks/outcomes/outcome.ts';
import { migratedMemory } from '../../../support/migrated-database.ts';
import { recordingProcess, taken } from '../../../support/recording-process.ts';

const INVESTIGATION = {
    timestamp: '2026-11-21T09:30:00Z',
    title: 'Suspicious sign-in of somebody',
    link: 'https://example.com/i/1',
    investigationId: '8b1f8d0a-5d3c-4f6a-9a43-2a2a35f3e0aa',
    investigationRrn: 'rrn:investigation:eu:1:investigation:ABC',
    actors: { users: [], assets: [] },
};

/** A queue that gives its jobs to nobody until it is let to. */
function heldQueue(): DeliveryQueue & { readonly held: DeliveryJob[]; hold: boolean; release(): Promise<void> } {
    const queue = memoryQueue();
    const held: DeliveryJob[] = [];
    const self = {
        ...queue,
        held,
        hold: false,
        async add(jobs: readonly DeliveryJob[]) {
            if (self.hold) {
                held.push(...jobs);
            } else {
                await queue.add(jobs);
            }
        },
        release: () => queue.add(held),
    };
    return self;
}

t.test('sends nothing of an event that was erased before its attempt began', async (t) => {
    const queue = heldQueue();
    const { publish, exporters, deliveries, events, sent, start, work } = recordingProcess(t, memoryWebhooks(), { queue });
    await start();
    await work(['default']);
    const { exporter } = await exporters.create({ url: 'https://receiver.example/' });
    await exporters.start(exporter.id);
    // The settings are known by then, so that what is at hand needs no look at the rows.
    await publish('idr_investigation_created', INVESTIGATION);
    await until(() => sent.length === 2);

    queue.hold = true;
    const { eventId, deliveries: ids } = await publish('idr_investigation_created', INVESTIGATION);
    await until(() => queue.held.length === 1);
    t.not(queue.held[0]?.reservation, null, 'it was handed out with its claim');
    t.match(await events.erase(eventId), { id: eventId, kind: 'idr_investigation_created', erasedAt: Date, ended: 1 });
    queue.hold = false;
    await queue.release();
    await publish('idr_investigation_created', INVESTIGATION);
    await until(async () => (await deliveries.list({ state: 'delivered' })).length === 3);
    await until(async () => (await deliveries.list({ state: 'queued' })).length === 0);
    t.equal(sent.length, 3);
    t.match(await deliveries.show(ids[0] as string), { state: 'erased', attempts: 0, history: [] });
    t.match(await events.show(eventId), { id: eventId, erasedAt: Date });
    await t.rejects(deliveries.replay(ids[0] as string), { code: 'CONFLICT', message: /erased/ });
});

t.test('lets an attempt end that is under way, and makes no other', async (t) => {
    let end: (outcome: Outcome) => void = () => {};
    const answer = () =>
        new Promise<Outcome>((resolve) => {
            end = resolve;
        });
    const { publish, exporters, deliveries, events, sent, start, work } = recordingProcess(t, memoryWebhooks(), {}, answer);
    await start();
    await work(['default']);
    const { exporter } = await exporters.create({ url: 'https://receiver.example/' });
    const starting = exporters.start(exporter.id);
    await until(() => sent.length === 1);
    end(taken);
    await starting;
    const { eventId, deliveries: ids } = await publish('idr_investigation_created', INVESTIGATION);
    await until(() => sent.length === 2);

    t.match(await events.erase(eventId), { ended: 1 });
    end({ ...taken, code: 'server_error', status: 500 });
    const shown = () => deliveries.show(ids[0] as string);
    await until(async () => (await shown()).history.some(({ late }) => late));
    t.match(await shown(), { state: 'erased', attempts: 1, history: [{ outcome: { code: 'server_error' }, late: true }] });
    t.equal(sent.length, 2);
});

t.test('resolves when nobody else can begin any more what was handed out before', async (t) => {
    const stores = memoryWebhooks();
    const { publish, exporters, events, waits, start } = recordingProcess(t, stores);
    await start();
    const { exporter } = await exporters.create({ url: 'https://receiver.example/' });
    await stores.exporters.update(exporter.id, { state: 'running' });
    const publishOne = async () => (await publish('idr_investigation_created', INVESTIGATION)).eventId;

    await events.erase(await publishOne());
    t.same(waits, [], 'there is nobody else');
    await stores.deliveries.keepAlive({ id: randomUUID(), process: 'other', slots: {}, opensUrls: true }, 1_000_000);
    const second = await publishOne();
    await events.erase(second);
    t.same(waits, [RESERVATION_TIMES.beginWithin]);
    await events.erase(second);
    t.same(waits, [RESERVATION_TIMES.beginWithin], 'nothing has ended by it');
});

t.test('knows nothing of an event that does not exist', async (t) => {
    const { events } = recordingProcess(t, memoryWebhooks());
    await t.rejects(events.show(randomUUID()), { code: 'NOT_FOUND', field: 'id' });
    await t.rejects(events.erase(randomUUID()), { code: 'NOT_FOUND', field: 'id' });
});

t.test('erases what formats have made of a body, too', async (t) => {
    const pool = await migratedMemory();
    t.teardown(() => pool.end());
    const { exporters, deliveries } = postgresWebhooks({ pool });
    const exporter = sampleExporter({ format: 'slack' });
    await exporters.insert(exporter);
    const message = { contentType: 'application/json', headers: [], body: '{"text":"x"}', failure: null };
    const [erased, kept] = [sampleEvent(), sampleEvent()];
    const recipients = { types: [], subscribers: [{ exporterId: exporter.id, message }] };
    await deliveries.accept([erased, kept].map((event) => ({ event, recipients })));
    await deliveries.erase(erased.id);
    const { rows } = await pool.query('select event_id from scanwire.delivery_messages');
    t.same(rows, [{ event_id: kept.id }]);
});
