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
    const more = '; of others to this exporter 599 more have failed for good since its last line';
    t.strictSame(
        said.filter((text) => text !== undefined),
        [failed, failed + more, failed + more],
    );
    t.match(lineOf(ended('delivery.exhausted', { exporterId: 'x2' })), { text: /to exporter x2 .* replay$/ });
    t.end();
});

const exporterEvent = { exporterId: 'x1', collector: 'edge', at: new Date(), failures: 5, failingSince: null, reason: null, code: null };

t.test('says how many were not told with what becomes of their exporter, by how they ended', (t) => {
    const lineOf = logLines(() => 0);
    const ends = (type: DeliveryEvent['type'], count: number) => Array.from({ length: count }, () => lineOf(ended(type)));
    ends('delivery.exhausted', 4);
    t.strictSame(ends('delivery.poisoned', 1), [null]);
    const stopped = 'Exporter x1 of collector edge was stopped: The receiver answered 410 Gone';
    const stop = { ...exporterEvent, type: 'exporter.stopped', reason: 'The receiver answered 410 Gone' } as const;
    t.strictSame(lineOf(stop), {
        level: 'warn',
        text: `${stopped}; of deliveries to it 3 more have failed for good and 1 more is set aside as poisoned since its last line`,
    });
    t.strictSame(ends('delivery.exhausted', 1), [null], 'the minute is not over');
    t.match(lineOf({ ...stop, exporterId: 'x2' }), { text: /410 Gone$/ }, 'of another one');
    t.match(lineOf(stop), { text: /410 Gone; of deliveries to it 1 more has failed for good since its last line$/ });
    t.match(lineOf(stop), { text: /410 Gone$/ });
    t.end();
});

t.test('says how many were not told once their minute is over, whatever is emitted then', (t) => {
    let time = 0;
    const lineOf = logLines(() => time);
    for (const exporterId of ['x1', 'x2', 'x3', 'x1', 'x3', 'x3']) {
        lineOf(ended('delivery.exhausted', { exporterId }));
        time += 1;
    }
    const other = ended('delivery.delivered', { exporterId: 'x9' });
    time = 59_999;
    t.equal(lineOf(other), null);
    time = 60_002;
    const of = 'Of deliveries to exporter';
    t.strictSame(lineOf(other), { level: 'warn', text: `${of} x1 1 more has failed for good since its last line` });
    t.strictSame(lineOf(ended('delivery.failed')), { level: 'warn', text: `${of} x3 2 more have failed for good since its last line` });
    t.equal(lineOf(other), null);
    t.match(lineOf(ended('delivery.exhausted', { exporterId: 'x3' })), { text: /kept for replay$/ }, 'nothing is told twice');
    t.end();
});

t.test('keeps no more than ten thousand exporters in mind', (t) => {
    const lineOf = logLines(() => 0);
    const fails = (number: number) => lineOf(ended('delivery.exhausted', { exporterId: `x${number}` }));
    for (let number = 0; number <= 10_000; number += 1) {
        fails(number);
    }
    t.equal(fails(1), null);
    t.match(fails(0), { text: /kept for replay$/ }, 'the first is forgotten');
    t.end();
});

t.test('says what became of an exporter, whatever is known of it', (t) => {
    const lineOf = logLines();
    t.match(lineOf({ ...exporterEvent, type: 'exporter.failing' }), {
        level: 'warn',
        text: 'Exporter x1 of collector edge is failing: 5 failures in a row',
    });
    t.match(lineOf({ ...exporterEvent, type: 'exporter.recovered' }), { level: 'info' });
    t.end();
});
