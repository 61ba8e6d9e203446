import t from 'tap';
import type { Grant } from '../../../lib/webhooks/grants.ts';
import { GRANTS, type Grants, grantsOf } from '../../../lib/webhooks/grants.ts';
import type { Claim } from '../../../lib/webhooks/store.ts';

/** The store's time when it was first heard of. */
const HEARD = Date.UTC(2026, 10, 21);

/** A process that has heard of the store's time at 1,000 of its own, 40 milliseconds after it had asked. */
function process(): { grants: Grants; at(monotonic: number): Grants } {
    let now = 1_000;
    const grants = grantsOf({ monotonic: () => now, claimDuration: 60_000 });
    grants.heard(new Date(HEARD), 960);
    return {
        grants,
        at(monotonic) {
            now = monotonic;
            return grants;
        },
    };
}

function endingAt(beginBy: number): Grant {
    return { token: 'token', beginBy, generation: 0, attemptSinceReplay: 1, settings: 0 };
}

function claimOf(token: string): Claim {
    return { deliveryId: `of ${token}`, token, claimedAt: new Date(HEARD) } as Claim;
}

t.test('begins in time by the latest that the time of the store can be', async (t) => {
    const { at } = process();
    const grant = endingAt(HEARD + 500);
    t.equal(at(1_000).inTime(grant), true);
    t.equal(at(1_459).inTime(grant), true);
    t.equal(at(1_460).inTime(grant), false, 'the answer may have been under way for 40 ms');
    t.same(at(1_460).now(), new Date(HEARD + 500));
});

t.test('begins nothing while it knows no time', async (t) => {
    const { at } = process();
    const unknown = grantsOf({ monotonic: () => 1_000, claimDuration: 60_000 });
    t.equal(unknown.inTime(endingAt(HEARD + 500)), false);
    t.equal(unknown.now(), null);
    t.same(unknown.report(), { upTo: null, attempts: [] });

    const last = 1_000 + GRANTS.timeTrustedFor;
    t.equal(at(last).inTime(endingAt(HEARD + GRANTS.timeTrustedFor + 500)), true);
    t.equal(at(last + 1).inTime(endingAt(HEARD + GRANTS.timeTrustedFor + 500)), false, 'the store was not heard of for too long');
    t.equal(at(last + 1).now(), null);
    at(last + 1).heard(new Date(HEARD + 20_000), last);
    t.equal(at(last + 1).inTime(endingAt(HEARD + 20_500)), true);
});

t.test('begins nothing that was handed out before the clock of the store was set back', async (t) => {
    const { at } = process();
    t.equal(at(1_000).inTime(endingAt(HEARD + 40 + 2 * GRANTS.beginWithin)), true);
    t.equal(at(1_000).inTime(endingAt(HEARD + 41 + 2 * GRANTS.beginWithin)), false);
});

t.test('begins nothing after its process has stood still', async (t) => {
    const { at } = process();
    const grant = endingAt(HEARD + GRANTS.beginWithin);
    t.equal(at(1_000).inTime(grant), true);
    t.equal(at(4_000).inTime(grant), false);
});

t.test('names what goes on for too long, until the store has heard of it', async (t) => {
    const { grants, at } = process();
    t.equal(grants.nextReport(), null);
    grants.begin(claimOf('one'));
    at(1_100).begin(claimOf('two'));
    t.equal(grants.nextReport(), GRANTS.reportedAfter - 100);
    t.same(at(1_499).report().attempts, []);

    const report = at(1_500).report();
    const one = { deliveryId: 'of one', token: 'one', claimedAt: new Date(HEARD), duration: 60_000 };
    t.same(report, { upTo: new Date(HEARD + 500), attempts: [one] }, 'up to the earliest that the time of the store can be');
    t.equal(grants.nextReport(), 0, 'the store has not heard of it yet');
    t.same(at(1_550).report().attempts, [one]);
    grants.reported(report);
    t.equal(grants.nextReport(), 50);
    t.same(
        at(1_600)
            .report()
            .attempts.map(({ token }) => token),
        ['two'],
        'what was named is not named again',
    );
});

t.test('names nothing whose outcome is recorded', async (t) => {
    const { grants, at } = process();
    grants.begin(claimOf('one'));
    const report = at(1_500).report();
    grants.end('one');
    t.equal(grants.nextReport(), null);
    t.same(at(1_600).report().attempts, []);
    t.doesNotThrow(() => grants.reported(report), 'it has ended while the store was told');
});
