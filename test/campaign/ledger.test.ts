import t from 'tap';
import type { RecordedFault } from './faults.ts';
import type { Answer, Arrival } from './journal.ts';
import { type Evidence, failuresOf, verdict } from './ledger.ts';
import { recordedFault } from './recorded-fault.ts';

const exporters = new Map([['id-of-alpha', 'alpha']]);

/** An event that was accepted at 0, came at 1000 and was answered at once; what is given differs. */
function evidence(given: Partial<Evidence> = {}): Evidence {
    return {
        accepted: [{ eventId: 'event', at: 0, from: 0 }],
        received: post(1, 1000),
        deliveries: [row('delivered')],
        faults: [],
        exporters,
        ordered: 'alpha',
        contentTypes: new Map(['alpha', 'beta'].map((name) => [name, 'application/json'])),
        ...given,
    };
}

function row(state: Evidence['deliveries'][number]['state']): Evidence['deliveries'][number] {
    return {
        id: 'delivery',
        eventId: 'event',
        exporterId: 'id-of-alpha',
        kind: 'idr_investigation_created',
        collector: 'default',
        state,
        attempts: 1,
        dueAt: new Date(0),
        createdAt: new Date(0),
        finishedAt: null,
        lastCode: null,
    };
}

function post(number: number, at: number, arrival: Partial<Arrival> = {}, answer: Partial<Answer> = {}): (Arrival | Answer)[] {
    return [
        {
            is: 'arrival',
            post: number,
            at,
            exporter: 'alpha',
            to: '127.1.0.1',
            kind: 'idr_investigation_created',
            messageId: 'event',
            contentType: 'application/json',
            bodyHash: 'hash',
            signature: 'signature',
            refusal: null,
            publication: 'alone',
            ...arrival,
        },
        { is: 'answer', post: number, at, status: 204, written: true, ...answer },
    ];
}

t.test('finds nothing in a campaign in which all went well', (t) => {
    t.match(verdict(evidence()), { events: 1, posts: 1, lost: [], duplicates: [], longestDelay: 1000, wrong: new Map() });
    t.end();
});

t.test('finds what was lost', (t) => {
    const loss = { eventId: 'event', exporter: 'alpha' };
    t.strictSame(verdict(evidence({ received: [] })).lost, [{ ...loss, delivery: 'delivered, never tried' }], 'no POST at all');
    t.strictSame(verdict(evidence({ deliveries: [], received: [] })).lost, [{ ...loss, delivery: 'without a row' }], 'not even a row');
    t.strictSame(verdict(evidence({ accepted: [], received: [], deliveries: [row('pending')] })).lost, [
        { ...loss, delivery: 'pending, never tried' },
    ]);
    for (const answer of [{ status: 503 }, { status: null }, { written: false }]) {
        t.equal(verdict(evidence({ received: post(1, 1000, {}, answer) })).lost.length, 1, JSON.stringify(answer));
    }
    t.end();
});

t.test('misses nothing that is accepted while somebody has stopped the exporter, and else all', (t) => {
    const stopped = recordedFault({ kind: 'exporter stopped', target: 'alpha', from: 100, until: 200, excuses: null, address: null });
    const judged = (accepted: { from: number; at: number }, given: Partial<Evidence> = {}) => {
        const { lost, leftOut } = verdict(
            evidence({ accepted: [{ eventId: 'event', ...accepted }], received: [], deliveries: [], faults: [stopped], ...given }),
        );
        return [lost.length, leftOut];
    };
    t.strictSame(judged({ from: 120, at: 130 }), [0, 1]);
    t.strictSame(judged({ from: 90, at: 100 }), [0, 1], 'while it was being stopped');
    t.strictSame(judged({ from: 200, at: 210 }), [0, 1], 'while it was being started');
    t.strictSame(judged({ from: 80, at: 99 }), [1, 0], 'before');
    t.strictSame(judged({ from: 201, at: 210 }), [1, 0], 'after');
    t.strictSame(judged({ from: 120, at: 130 }, { deliveries: [row('pending')] }), [1, 0], 'what was stored for it is to be sent');
    t.strictSame(judged({ from: 120, at: 130 }, { faults: [{ ...stopped, target: 'beta' }] }), [1, 0], 'another exporter');
    t.strictSame(
        judged({ from: 120, at: 130 }, { faults: [{ ...stopped, kind: 'exporter paused' }] }),
        [1, 0],
        'a pause leaves nothing out',
    );
    t.strictSame(judged({ from: 120, at: 130 }, { received: post(1, 300, {}, { status: 503 }) }), [1, 0], 'what was sent had a row');
    const unknown = { ...row('delivered'), exporterId: 'id-of-beta', createdAt: new Date(150) };
    const both = { deliveries: [unknown], exporters: new Map([...exporters, ['id-of-beta', 'beta']]), accepted: [] };
    t.strictSame(judged({ from: 0, at: 0 }, { ...both, received: post(1, 300, { exporter: 'beta' }) }), [0, 1], 'by the time of its rows');
    t.end();
});

t.test('takes a retry for no duplicate, and a repetition for one', (t) => {
    const retried = [...post(1, 1000, {}, { status: 503 }), ...post(2, 2000), ...post(3, 2500, { exporter: 'beta' })];
    t.strictSame(verdict(evidence({ received: retried })).duplicates, []);

    const repeated = [...post(1, 1000), ...post(2, 9000), ...post(3, 9500)];
    t.match(verdict(evidence({ received: repeated })).duplicates, [
        { first: { post: 1 }, post: { post: 2 }, cause: null },
        { first: { post: 2 }, post: { post: 3 }, cause: null },
    ]);

    const overlapping = [...post(1, 1000, {}, { at: 9000 }), ...post(2, 5000, {}, { status: 503 })];
    t.match(verdict(evidence({ received: overlapping })).duplicates, [{ first: { post: 1 }, post: { post: 2 } }]);
    t.end();
});

t.test('accepts as the cause a fault of the very process that sent the first, while it was in flight', (t) => {
    const received = [...post(1, 1000, {}, { at: 2000 }), ...post(2, 30_000, { to: '127.2.0.1' })];
    const causeOf = (given: Partial<RecordedFault>): unknown =>
        verdict(evidence({ received, faults: [recordedFault(given)] })).duplicates[0]?.cause?.kind ?? null;

    t.equal(causeOf({ from: 1500, until: 1500 }), 'process killed');
    t.equal(causeOf({ from: 4900, until: 4900 }), 'process killed', 'the outcome is on its way to the store');
    t.equal(causeOf({ from: 5100, until: 5100 }), null, 'too late');
    t.equal(causeOf({ from: 900, until: 900 }), null, 'too early');
    t.equal(causeOf({ from: 100, until: 900, excuses: 200 }), 'process killed', 'what it has left behind');
    t.equal(causeOf({ from: 1500, until: 1500, address: '127.2.0.1' }), null, 'another process');
    t.equal(causeOf({ from: 1500, until: 1500, address: '127.1.0.2' }), null, 'another start of the process');
    t.equal(causeOf({ from: 1500, until: 1500, address: null }), 'process killed', 'the database of all');
    t.equal(causeOf({ from: 1500, until: 1500, excuses: null }), null, 'a fault that excuses nothing');

    const still = { kind: 'process stands still', from: 5000, until: 28_000, address: '127.2.0.1' };
    t.equal(causeOf(still), 'process stands still', 'its own process had claimed it long before');
    t.equal(causeOf({ ...still, kind: 'process killed' }), null);
    t.end();
});

t.test('counts what was in flight when a fault happened', (t) => {
    const received = [...post(1, 1000), ...post(2, 1100, { messageId: 'other' }), ...post(3, 9000, { messageId: 'third' })];
    const one = recordedFault({ from: 1050, until: 1050 });
    t.strictSame([...verdict(evidence({ received, faults: [one, recordedFault({ excuses: null })] })).inFlight], [[one, 1]]);
    t.end();
});

t.test('fails for what was lost, has no cause, or is more than was in flight', (t) => {
    const failures = (given: Partial<Evidence>): readonly string[] => failuresOf(verdict(evidence(given)));
    t.strictSame(failures({}), []);
    t.strictSame(failures({ received: [] }), ['Lost: alpha, delivered, never tried: 1 deliveries']);
    t.strictSame(failures({ deliveries: [row('exhausted')] }), ['A message that was answered 2xx is exhausted in the store: 1 times']);

    const repeated = [...post(1, 1000), ...post(2, 9000, { to: '127.2.0.1' })];
    t.strictSame(failures({ received: repeated }), ['Duplicates without a cause: 1']);
    const one = recordedFault({ from: 1000, until: 1000 });
    t.strictSame(failures({ received: repeated, faults: [one] }), [], 'one was in flight, and is repeated once');
    const stoodStill = recordedFault({ kind: 'process stands still', from: 5000, until: 8000, address: '127.2.0.1' });
    const again = [...repeated, ...post(3, 9500, { to: '127.2.0.1' })];
    t.strictSame(failures({ received: again, faults: [stoodStill] }), [
        'More duplicates than were in flight: process stands still, host-1',
    ]);
    t.end();
});

t.test('finds what must never arrive, or not so', (t) => {
    const wrong = (received: readonly (Arrival | Answer)[], more: Partial<Evidence> = {}): readonly string[] => [
        ...verdict(evidence({ received, ...more })).wrong.keys(),
    ];
    t.strictSame(wrong(post(1, 1000, { publication: 'rolled back' })), ['An event arrived whose transaction was rolled back']);
    t.strictSame(wrong([...post(1, 1000), ...post(2, 1000, { messageId: 'unknown' })]), ['An event arrived that was never committed']);
    t.strictSame(wrong(post(1, 1000, { refusal: 'too old' })), ['A receiver refuses a message: too old']);
    t.strictSame(wrong([...post(1, 1000, {}, { status: 503 }), ...post(2, 2000, { bodyHash: 'another' })]), [
        'Two tries of a message differ in body or signature',
    ]);
    t.strictSame(wrong([...post(1, 1000, {}, { status: 503 }), ...post(2, 2000, { signature: 'another' })]), [
        'Two tries of a message differ in body or signature',
    ]);
    t.strictSame(wrong([...post(1, 1000), ...post(2, 1000, { exporter: 'beta', bodyHash: 'another' })]), [
        'Two exporters of one format got different bodies of an event',
    ]);
    const enveloped = [
        ...post(1, 1000),
        ...post(2, 1000, { exporter: 'beta', contentType: 'application/cloudevents+json', bodyHash: 'another' }),
    ];
    t.strictSame(wrong(enveloped), ['A message came in another format than that of its exporter']);
    const contentTypes = new Map([
        ['alpha', 'application/json'],
        ['beta', 'application/cloudevents+json'],
    ]);
    t.strictSame(wrong(enveloped, { contentTypes }), []);
    t.strictSame(wrong(post(1, 1000), { deliveries: [row('exhausted')] }), ['A message that was answered 2xx is exhausted in the store']);
    t.strictSame(wrong(post(1, 1000, { kind: 'test', messageId: 'a test' }), { accepted: [], deliveries: [] }), []);
    t.end();
});

t.test('finds what overtakes another of its order key', (t) => {
    const [FIRST, SECOND] = [
        { eventId: 'event', from: 0, at: 10, orderKey: 'key' },
        { eventId: 'other', from: 20, at: 30, orderKey: 'key' },
    ];
    const failed = post(1, 1000, {}, { status: 503 });
    const overtaken = [...failed, ...post(2, 1100, { messageId: 'other' }), ...post(3, 1200)];
    const wrong = (accepted: Evidence['accepted'], received = overtaken, more: Partial<Evidence> = {}): readonly string[] => [
        ...verdict(
            evidence({ accepted, received, deliveries: [row('delivered'), { ...row('delivered'), eventId: 'other' }], ...more }),
        ).wrong.keys(),
    ];
    t.strictSame(wrong([SECOND, FIRST]), ['A message came before another of its order key was taken']);
    t.strictSame(wrong([FIRST, SECOND], [...failed, ...post(2, 1100), ...post(3, 1100, { messageId: 'other' })]), []);
    const answeredLate = [...post(1, 1000, {}, { at: 9000 }), ...post(2, 1100), ...post(3, 1200, { messageId: 'other' })];
    t.strictSame(wrong([FIRST, SECOND], answeredLate), [], 'it was taken as soon as any try of it was');
    t.strictSame(wrong([FIRST, { ...SECOND, from: 9 }]), [], 'both at once have no order');
    t.strictSame(wrong([FIRST, { ...SECOND, orderKey: 'another' }]), []);
    t.strictSame(wrong([FIRST, { eventId: 'other', from: 20, at: 30 }]), []);
    t.strictSame(wrong([FIRST, SECOND], overtaken, { ordered: 'beta' }), [], 'another exporter takes it as it comes');
    t.strictSame(wrong([FIRST, SECOND], [...failed, ...post(2, 1100, { messageId: 'other' })]), [], 'what is lost is told so');
    t.end();
});
