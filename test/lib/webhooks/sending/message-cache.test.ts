import { mock } from 'node:test';
import t, { type Test } from 'tap';
import type { Claim, HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Reservation } from '../../../../lib/webhooks/dispatching/reservations.ts';
import type { StoredExporter } from '../../../../lib/webhooks/exporters/exporter.ts';
import { type ByteBudget, byteBudget } from '../../../../lib/webhooks/sending/byte-budget.ts';
import { CACHED_FOR, type MessageCache, messageCache } from '../../../../lib/webhooks/sending/message-cache.ts';

const ACCEPTED = Date.UTC(2026, 10, 21);
const NOW = new Date(ACCEPTED + 7);

/** Eight bytes in seven characters. */
const EVENT = { id: 'event', kind: 'idr_investigation_created', body: '{"a":é}', createdAt: new Date(ACCEPTED) };

/** A delivery that was handed out, with the job that takes it. */
function handedOut(
    deliveryId: string,
    exporterId = 'siem',
    generation = 3,
): HandedOut & { readonly reservation: Reservation & { settings: number } } {
    const reservation = { token: `of ${deliveryId}`, beginBy: ACCEPTED + 1_000, generation, attemptSinceReplay: 1 };
    return { deliveryId, exporterId, collector: 'default', attempt: 1, singleAttempt: false, reservation: { ...reservation, settings: 0 } };
}

function exporterNamed(id: string): StoredExporter {
    return { id, url: `https://${id}.example/`, updatedAt: new Date(ACCEPTED) } as StoredExporter;
}

function learnt(id: string, generation = 3): Claim {
    return { exporter: exporterNamed(id), generation } as Claim;
}

/** Those that know the settings of the exporter. */
function informed(limit = 100): { readonly cache: MessageCache; readonly bodyMemory: ByteBudget } {
    const bodyMemory = byteBudget({ limit, largest: 1 });
    const cache = messageCache(bodyMemory);
    cache.addSettings(learnt('siem'));
    return { cache, bodyMemory };
}

/** Timers that wait to be moved on. */
function setTimers(t: Test): void {
    mock.timers.enable({ apis: ['setTimeout'] });
    t.teardown(() => mock.timers.reset());
}

t.test('has at hand what was just accepted, once', async (t) => {
    setTimers(t);
    const { cache, bodyMemory } = informed();
    const one = handedOut('one');
    cache.add([one.deliveryId], EVENT);
    t.same(cache.take(one, NOW), {
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
    t.equal(cache.take(one, NOW), null);
    t.equal(bodyMemory.bytesOf('siem'), 8, 'its bytes are for the taker to give back');
});

t.test('has nothing at hand for an exporter whose settings it does not know, or has forgotten, or that were changed', async (t) => {
    setTimers(t);
    const { cache } = informed();
    cache.add(['one', 'other', 'newer'], EVENT);
    t.equal(cache.take(handedOut('other', 'unknown'), NOW), null);
    t.equal(cache.take(handedOut('newer', 'siem', 4), NOW), null);
    await cache.forgetSettings('siem');
    t.equal(cache.take(handedOut('one'), NOW), null);
    cache.addSettings(learnt('siem', 4));
    t.equal(cache.take(handedOut('one'), NOW), null, 'they are newer than its claim');
    t.equal(cache.take(handedOut('newer', 'siem', 4), NOW)?.deliveryId, 'newer');
});

t.test('holds what it has been told last, until it has to forget it', async (t) => {
    setTimers(t);
    const { cache } = informed();
    const claim = (generation: number, id = 'siem'): Claim => ({ ...learnt(id, generation), event: EVENT }) as Claim;
    t.equal(cache.holds(claim(3)), true);
    t.equal(cache.holds(claim(3, 'unknown')), false);
    cache.addSettings(learnt('siem', 4));
    t.equal(cache.holds(claim(3)), false);
    cache.addSettings(learnt('siem', 2));
    t.equal(cache.holds(claim(2)), true, 'a store that has lost a change is right');
    await cache.forgetEvent('other');
    t.equal(cache.holds(claim(2)), true);
    await cache.forgetEvent(EVENT.id);
    t.equal(cache.holds(claim(2)), false);
    mock.timers.tick(1_000);
    t.equal(cache.holds(claim(2)), true, 'nobody begins any more with what was read before');
    await cache.forgetSettings('siem');
    t.equal(cache.holds(claim(2)), false);
});

t.test('keeps no more than there is room for', async (t) => {
    setTimers(t);
    const { cache, bodyMemory } = informed(32);
    const all = ['one', 'two', 'three'].map((id) => handedOut(id));
    cache.add(
        all.map(({ deliveryId }) => deliveryId),
        EVENT,
    );
    t.equal(bodyMemory.allowance('other'), (32 - 16) / 2, 'half of it');
    t.strictSame(
        all.map((one) => cache.take(one, NOW)?.deliveryId),
        ['one', 'two', undefined],
    );
});

t.test('lets go of what nobody takes, and gives its room back', async (t) => {
    setTimers(t);
    const { cache, bodyMemory } = informed(32);
    cache.add(['one'], EVENT);
    mock.timers.tick(CACHED_FOR);
    cache.add(['two'], EVENT);
    t.equal(bodyMemory.allowance('other'), (32 - 16) / 2, 'as long as it may still be begun it is there');
    mock.timers.tick(CACHED_FOR);
    t.equal(cache.take(handedOut('one'), NOW), null);
    t.equal(bodyMemory.allowance('other'), (32 - 8) / 2);
    t.equal(cache.take(handedOut('two'), NOW)?.deliveryId, 'two');
    mock.timers.tick(10 * CACHED_FOR);
    t.equal(bodyMemory.bytesOf('siem'), 8, 'what was taken is not given back here');
});

t.test('knows a bounded number of exporters, those that were learnt last', async (t) => {
    setTimers(t);
    const { cache } = informed(1_000_000);
    for (let count = 0; count < 999; count++) {
        cache.addSettings(learnt(`exporter-${count}`));
    }
    cache.addSettings(learnt('siem'));
    cache.addSettings(learnt('one more'));
    for (const id of ['siem', 'exporter-1', 'exporter-998', 'one more', 'exporter-0']) {
        const one = handedOut(`to ${id}`, id);
        cache.add([one.deliveryId], EVENT);
        t.equal(cache.take(one, NOW)?.exporter.id, id === 'exporter-0' ? undefined : id);
    }
});

t.test('keeps the settings that it has for as long as they are the same, with what was unsealed of them', async (t) => {
    setTimers(t);
    const { cache } = informed();
    const taken = (generation: number) => {
        cache.add(['one'], EVENT);
        return cache.take(handedOut('one', 'siem', generation), NOW)?.exporter;
    };
    const before = taken(3);
    t.ok(before);
    cache.addSettings(learnt('siem'));
    t.equal(taken(3), before);
    cache.addSettings(learnt('siem', 4));
    t.not(taken(4), before);
    const reordered = { ...exporterNamed('siem'), ordered: true, updatedAt: NOW };
    cache.addSettings({ exporter: reordered, generation: 4 });
    t.equal(taken(4), reordered, 'changed in what no generation counts');
});

t.test('counts a message once that is added twice', async (t) => {
    setTimers(t);
    const { cache, bodyMemory } = informed();
    cache.add(['one'], EVENT);
    cache.add(['one'], EVENT);
    t.ok(cache.take(handedOut('one'), NOW));
    bodyMemory.giveBack('siem', 8);
    t.ok(bodyMemory.tryTake(50), 'half of all is free');
});

t.test('forgets of an event what a read brings that began before', async (t) => {
    setTimers(t);
    const { cache } = informed();
    let bring = (): void => undefined;
    const read = new Promise<void>((resolve) => {
        bring = resolve;
    }).then(() => cache.add(['one'], EVENT));
    void cache.duringRead(read);
    const forgotten = cache.forgetEvent(EVENT.id);
    bring();
    await forgotten;
    t.equal(cache.take(handedOut('one'), NOW), null);
});
