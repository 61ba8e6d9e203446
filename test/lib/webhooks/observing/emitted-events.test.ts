import t from 'tap';
import { type DeliveryEvent, logLines } from '../../../../lib/webhooks/observing/emitted-events.ts';

const ended = (type: DeliveryEvent['type'], more: Partial<DeliveryEvent> = {}): DeliveryEvent => ({
    type,
    deliveryId: 'd1',
    eventId: 'e1',
    kind: 'scan_finished',
    exporterId: 'x1',
    collector: 'default',
    attempt: 8,
    singleAttempt: false,
    duration: 3,
    latency: 5,
    code: 'server_error',
    status: 500,
    detail: 'Answered 500',
    ...more,
});

const failed = 'Delivery d1 to exporter x1 has failed for good after attempt 8: server_error, status 500; it is kept for replay';

t.test('says what ended in vain, and nothing of what goes well, is tried again or was only tested', (t) => {
    const lineOf = logLines(() => 0);
    for (const event of [
        ended('delivery.delivered'),
        ended('delivery.failed'),
        ended('delivery.exhausted', { singleAttempt: true }),
        { type: 'event.accepted', eventId: 'e1', kind: 'scan_finished', deliveries: 1, inTransaction: false } as const,
    ]) {
        t.equal(lineOf(event), null, event.type);
    }
    t.strictSame(lineOf(ended('delivery.exhausted')), { level: 'warn', text: failed });
    t.strictSame(lineOf(ended('delivery.poisoned', { exporterId: 'x2', attempt: 20, code: 'interrupted', status: null })), {
        level: 'warn',
        text: 'Delivery d1 to exporter x2 is set aside as poisoned after attempt 20: interrupted; it is kept for replay',
    });
    t.end();
});

t.test('says once a minute of an exporter that refuses everything, and how many there were', (t) => {
    let time = 0;
    const lineOf = logLines(() => time);
    const said: (string | undefined)[] = [];
    for (; time < 120_000; time += 100) {
        said.push(lineOf(ended('delivery.exhausted'))?.text);
    }
    said.push(lineOf(ended('delivery.exhausted'))?.text);
    const more = '; so did 599 more to this exporter since it was last said';
    t.strictSame(
        said.filter((text) => text !== undefined),
        [failed, failed + more, failed + more],
    );
    t.match(lineOf(ended('delivery.exhausted', { exporterId: 'x2' })), { text: /to exporter x2 .* replay$/ });
    t.end();
});

t.test('says what became of an exporter, whatever is known of it', (t) => {
    const lineOf = logLines();
    const event = { exporterId: 'x1', collector: 'edge', at: new Date(), failures: 5, failingSince: null, reason: null, code: null };
    t.match(lineOf({ ...event, type: 'exporter.failing' }), {
        level: 'warn',
        text: 'Exporter x1 of collector edge is failing: 5 failures in a row',
    });
    t.match(lineOf({ ...event, type: 'exporter.recovered' }), { level: 'info' });
    t.end();
});
