import t from 'tap';
import type { Claim } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import {
    RESERVATION_TIMES,
    type Reservation,
    type Reservations,
    reservationsOf,
} from '../../../../lib/webhooks/dispatching/reservations.ts';

/** The store's time when it was first heard of. */
const HEARD = Date.UTC(2026, 10, 21);

/** A process that has heard of the store's time at 1,000 of its own, 40 milliseconds after it had asked. */
function process(): { reservations: Reservations; at(monotonic: number): Reservations } {
    let now = 1_000;
    const reservations = reservationsOf({ monotonic: () => now, claimDuration: 60_000 });
    reservations.heard(new Date(HEARD), 960);
    return {
        reservations,
        at(monotonic) {
            now = monotonic;
            return reservations;
        },
    };
}

function endingAt(beginBy: number): Reservation {
    return { token: 'token', beginBy, generation: 0, attemptSinceReplay: 1, settings: 0 };
}

function claimOf(token: string): Claim {
    return { deliveryId: `of ${token}`, token, claimedAt: new Date(HEARD) } as Claim;
}

t.test('begins in time by the latest that the time of the store can be', async (t) => {
    const { at } = process();
    const reservation = endingAt(HEARD + 500);
    t.equal(at(1_000).inTime(reservation), true);
    t.equal(at(1_459).inTime(reservation), true);
    t.equal(at(1_460).inTime(reservation), false, 'the answer may have been under way for 40 ms');
    t.same(at(1_460).now(), new Date(HEARD + 500));
});

t.test('begins nothing while it knows no time', async (t) => {
    const { at } = process();
    const unknown = reservationsOf({ monotonic: () => 1_000, claimDuration: 60_000 });
    t.equal(unknown.inTime(endingAt(HEARD + 500)), false);
    t.equal(unknown.now(), null);
    t.same(unknown.report(), { upTo: null, attempts: [] });

    const last = 1_000 + RESERVATION_TIMES.timeTrustedFor;
    t.equal(at(last).inTime(endingAt(HEARD + RESERVATION_TIMES.timeTrustedFor + 500)), true);
    t.equal(
        at(last + 1).inTime(endingAt(HEARD + RESERVATION_TIMES.timeTrustedFor + 500)),
        false,
        'the store was not heard of for too long',
    );
    t.equal(at(last + 1).now(), null);
    at(last + 1).heard(new Date(HEARD + 20_000), last);
    t.equal(at(last + 1).inTime(endingAt(HEARD + 20_500)), true);
});

t.test('begins nothing that was handed out before the clock of the store was set back', async (t) => {
    const { at } = process();
    t.equal(at(1_000).inTime(endingAt(HEARD + 40 + 2 * RESERVATION_TIMES.beginWithin)), true);
    t.equal(at(1_000).inTime(endingAt(HEARD + 41 + 2 * RESERVATION_TIMES.beginWithin)), false);
});

t.test('begins nothing after its process has stood still', async (t) => {
    const { at } = process();
    const reservation = endingAt(HEARD + RESERVATION_TIMES.beginWithin);
    t.equal(at(1_000).inTime(reservation), true);
    t.equal(at(4_000).inTime(reservation), false);
});

t.test('names what goes on for too long, until the store has heard of it', async (t) => {
    const { reservations, at } = process();
    t.equal(reservations.nextReport(), null);
    reservations.begin(claimOf('one'));
    at(1_100).begin(claimOf('two'));
    t.equal(reservations.nextReport(), RESERVATION_TIMES.reportedAfter - 100);
    t.same(at(1_499).report().attempts, []);

    const report = at(1_500).report();
    const one = { deliveryId: 'of one', token: 'one', claimedAt: new Date(HEARD), duration: 60_000 };
    t.same(report, { upTo: new Date(HEARD + 500), attempts: [one] }, 'up to the earliest that the time of the store can be');
    t.equal(reservations.nextReport(), 0, 'the store has not heard of it yet');
    t.same(at(1_550).report().attempts, [one]);
    reservations.reported(report);
    t.equal(reservations.nextReport(), 50);
    t.same(
        at(1_600)
            .report()
            .attempts.map(({ token }) => token),
        ['two'],
        'what was named is not named again',
    );
});

t.test('names nothing whose outcome is recorded', async (t) => {
    const { reservations, at } = process();
    reservations.begin(claimOf('one'));
    const report = at(1_500).report();
    reservations.end('one');
    t.equal(reservations.nextReport(), null);
    t.same(at(1_600).report().attempts, []);
    t.doesNotThrow(() => reservations.reported(report), 'it has ended while the store was told');
});

t.test('of a store that may have slept with the machine, its time is not told too late', async (t) => {
    let [now, slept] = [1_000, 0];
    const reservations = reservationsOf({ monotonic: () => now, slept: () => slept, claimDuration: 60_000 });
    reservations.heard(new Date(HEARD), 1_000);
    reservations.begin(claimOf('begun'));
    now += 5_300;
    slept += 5_000;
    t.match(reservations.now(), new Date(HEARD + 5_300));
    t.equal(reservations.inTime(endingAt(HEARD + 1_000)), false);
    t.match(reservations.report(), { upTo: new Date(HEARD + 300), attempts: [{ token: 'begun' }] });
});
