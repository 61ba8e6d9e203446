import { mock } from 'node:test';
import t, { type Test } from 'tap';
import { type ByteBudget, byteBudget } from '../../../lib/webhooks/byte-budget.ts';
import type { StoredExporter } from '../../../lib/webhooks/exporter.ts';
import { KEPT_FOR, type KeptMessages, keptMessages } from '../../../lib/webhooks/kept-messages.ts';
import type { Reservation } from '../../../lib/webhooks/reservations.ts';
import type { Claim, Dispatched } from '../../../lib/webhooks/store.ts';

const ACCEPTED = Date.UTC(2026, 10, 21);
const NOW = new Date(ACCEPTED + 7);

/** Eight bytes in seven characters. */
const EVENT = { id: 'event', kind: 'idr_investigation_created', body: '{"a":é}', createdAt: new Date(ACCEPTED) };

/** A delivery that was handed out, with the job that takes it. */
function handedOut(
    deliveryId: string,
    exporterId = 'siem',
    generation = 3,
): Dispatched & { readonly reservation: Reservation & { settings: number } } {
    const reservation = { token: `of ${deliveryId}`, beginBy: ACCEPTED + 1_000, generation, attemptSinceReplay: 1 };
    return { deliveryId, exporterId, collector: 'default', attempt: 1, singleAttempt: false, reservation: { ...reservation, settings: 0 } };
}

function exporterNamed(id: string): StoredExporter {
    return { id, url: `https://${id}.example/` } as StoredExporter;
}

function learnt(id: string, generation = 3): Claim {
    return { exporter: exporterNamed(id), generation } as Claim;
}

/** Those that know the settings of the exporter. */
function informed(limit = 100): { readonly kept: KeptMessages; readonly bodies: ByteBudget } {
    const bodies = byteBudget({ limit, largest: 1 });
    const kept = keptMessages(bodies);
    kept.learn(learnt('siem'));
    return { kept, bodies };
}

/** Timers that wait to be moved on. */
function setTimers(t: Test): void {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
}

t.test('has at hand what was just accepted, once', async (t) => {
    setTimers(t);
    const { kept, bodies } = informed();
    const one = handedOut('one');
    kept.keep([one.deliveryId], EVENT);
    t.same(kept.take(one, NOW), {
        deliveryId: 'one',
        token: 'of one',
        claimedAt: NOW,
        attempt: 1,
        attemptSinceReplay: 1,
        singleAttempt: false,
        event: EVENT,
        message: null,
        exporter: exporterNamed('siem'),
        generation: 3,
    });
    t.equal(kept.take(one, NOW), null);
    t.equal(bodies.bytesOf('siem'), 8, 'its bytes are for the taker to give back');
});

t.test('has nothing at hand for an exporter whose settings it does not know, or has forgotten, or that were changed', async (t) => {
    setTimers(t);
    const { kept } = informed();
    kept.keep(['one', 'other', 'newer'], EVENT);
    t.equal(kept.take(handedOut('other', 'unknown'), NOW), null);
    t.equal(kept.take(handedOut('newer', 'siem', 4), NOW), null);
    await kept.forget('siem');
    t.equal(kept.take(handedOut('one'), NOW), null);
    kept.learn(learnt('siem', 4));
    t.equal(kept.take(handedOut('one'), NOW), null, 'they are newer than its claim');
    t.equal(kept.take(handedOut('newer', 'siem', 4), NOW)?.deliveryId, 'newer');
});

t.test('keeps no more than there is room for', async (t) => {
    setTimers(t);
    const { kept, bodies } = informed(32);
    const all = ['one', 'two', 'three'].map((id) => handedOut(id));
    kept.keep(
        all.map(({ deliveryId }) => deliveryId),
        EVENT,
    );
    t.equal(bodies.allowance('other'), (32 - 16) / 2, 'half of it');
    t.strictSame(
        all.map((one) => kept.take(one, NOW)?.deliveryId),
        ['one', 'two', undefined],
    );
});

t.test('lets go of what nobody takes, and gives its room back', async (t) => {
    setTimers(t);
    const { kept, bodies } = informed(32);
    kept.keep(['one'], EVENT);
    mock.timers.tick(KEPT_FOR);
    kept.keep(['two'], EVENT);
    t.equal(bodies.allowance('other'), (32 - 16) / 2, 'as long as it may still be begun it is there');
    mock.timers.tick(KEPT_FOR);
    t.equal(kept.take(handedOut('one'), NOW), null);
    t.equal(bodies.allowance('other'), (32 - 8) / 2);
    t.equal(kept.take(handedOut('two'), NOW)?.deliveryId, 'two');
    mock.timers.tick(10 * KEPT_FOR);
    t.equal(bodies.bytesOf('siem'), 8, 'what was taken is not given back here');
});

t.test('knows a bounded number of exporters, those that were learnt last', async (t) => {
    setTimers(t);
    const { kept } = informed(1_000_000);
    for (let count = 0; count < 999; count++) {
        kept.learn(learnt(`exporter-${count}`));
    }
    kept.learn(learnt('siem'));
    kept.learn(learnt('one more'));
    for (const id of ['siem', 'exporter-1', 'exporter-998', 'one more', 'exporter-0']) {
        const one = handedOut(`to ${id}`, id);
        kept.keep([one.deliveryId], EVENT);
        t.equal(kept.take(one, NOW)?.exporter.id, id === 'exporter-0' ? undefined : id);
    }
});
