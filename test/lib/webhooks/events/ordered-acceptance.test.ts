import t from 'tap';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { Acceptance } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { UnroutedEvent } from '../../../../lib/webhooks/events/event-routing.ts';
import { orderedAcceptance } from '../../../../lib/webhooks/events/ordered-acceptance.ts';

/** A store in which keys are locked, events refused, and statements take as long as they are told to. */
function acceptance() {
    const statements: (readonly [ids: string, lockTimeout: number])[] = [];
    const locked = new Set<string>();
    const refused = new Set<string>();
    const clock = { now: 0 };
    const sleeping: { readonly until: number; wake(): void }[] = [];
    const { one, all } = orderedAcceptance({
        async accept(events, lockTimeout) {
            const ids = events.map(({ id }) => id);
            statements.push([ids.join(' '), lockTimeout]);
            await new Promise(setImmediate);
            clock.now += lockTimeout;
            for (const one of sleeping.splice(0)) {
                if (one.until > clock.now) {
                    sleeping.push(one);
                } else {
                    one.wake();
                }
            }
            if (ids.some((id) => refused.has(id))) {
                throw new Error(`Refused: ${ids.join(' ')}`);
            }
            if (ids.includes('away')) {
                throw new ScanwireError('UNAVAILABLE', 'away');
            }
            return events.map(({ id, orderKey, idempotency }): Acceptance => {
                const isLocked = locked.has(orderKey ?? idempotency?.key ?? '');
                return { eventId: id, deliveries: [], handedOut: [], ...(isLocked && { locked: true }) };
            });
        },
        limit: 3,
        monotonic: () => clock.now,
        sleep: (milliseconds) => new Promise((wake) => sleeping.push({ until: clock.now + milliseconds, wake })),
    });
    const settled: string[] = [];
    const settle = async (event: Partial<UnroutedEvent>): Promise<void> => {
        try {
            const { eventId } = await one(event as UnroutedEvent);
            settled.push(eventId);
        } catch (error) {
            settled.push(`${event.id}: ${(error as Error).message}`);
        }
    };
    const publish = (id: string, isIdempotent = false): Promise<void> => {
        const idempotency = isIdempotent ? { idempotency: { key: id, digest: '' } } : {};
        return settle({ id, orderKey: /^key \d+/.exec(id)?.[0] ?? id.slice(0, 1), ...idempotency });
    };
    /** An event that has nothing but an idempotency key. */
    const publishOnce = (id: string): Promise<void> => settle({ id, owner: null, idempotency: { key: id.slice(0, 1), digest: '' } });
    /** Events with idempotency keys, all of them or none. */
    const publishTogether = async (...ids: readonly string[]): Promise<void> => {
        try {
            const accepted = await all(
                ids.map((id) => ({ id, owner: null, idempotency: { key: id.slice(0, 1), digest: '' } }) as UnroutedEvent),
            );
            settled.push(accepted.map(({ eventId }) => eventId).join(' '));
        } catch (error) {
            settled.push((error as Error).message);
        }
    };
    return { statements, locked, refused, clock, settled, publish, publishOnce, publishTogether };
}

t.test('shares statements, of which one at a time has events of a key', async (t) => {
    const { statements, settled, publish } = acceptance();
    await Promise.all(['a1', 'a2', 'b1', 'a3', 'a4', 'c1', 'a5', 'd1', 'e1', 'f1', 'c2'].map((id) => publish(id)));
    t.strictSame(
        statements.map(([ids]) => ids),
        ['a1', 'b1', 'c1 c2 d1', 'e1 f1', 'a2 a3 a4', 'a5'],
    );
    t.equal(settled.length, 11);
});

t.test('waits for a locked key beside all others, in the order of the calls', async (t) => {
    const { statements, locked, settled, publish } = acceptance();
    locked.add('a');
    const held = ['a1', 'a2', 'a3', 'a4'].map((id) => publish(id));
    await Promise.all(['b1', 'c1', 'b2'].map((id) => publish(id)));
    t.strictSame(settled.sort(), ['b1', 'b2', 'c1']);
    locked.delete('a');
    await Promise.all(held);
    t.strictSame(settled.slice(3), ['a1', 'a2', 'a3', 'a4']);
    const waiting = statements.filter(([, lockTimeout]) => lockTimeout > 0);
    t.ok(waiting.length > 0 && waiting.every((one) => one[0] === 'a1 a2 a3' && one[1] === 500), 'in statements of its own');
});

t.test('lets many locked keys take turns, and refuses what has waited for too long', async (t) => {
    const { statements, locked, clock, settled, publish } = acceptance();
    const keys = ['a', 'b', 'c', 'd', 'e'];
    for (const key of keys) {
        locked.add(key);
    }
    const held = keys.map((key) => publish(`${key}1`));
    while (clock.now < 10_000) {
        await new Promise(setImmediate);
    }
    const later = publish('a2');
    locked.delete('e');
    await held[4];
    t.strictSame(settled, ['e1']);
    t.ok(clock.now < 10_500, 'one that is free again soon has its turn');
    const waits = statements.map(([, lockTimeout]) => lockTimeout).filter((lockTimeout) => lockTimeout > 0);
    t.strictSame(new Set(waits.slice(-100)), new Set([50]), 'each waits for a short while');

    await Promise.all(held);
    const refusal = 'The event could not be stored within 25000 ms: an open transaction has its order key, or something else that it needs';
    t.strictSame(
        settled.slice(1).sort(),
        ['a', 'b', 'c', 'd'].map((key) => `${key}1: ${refusal}`),
    );
    locked.clear();
    await later;
    t.equal(settled.at(-1), 'a2', 'by its own time');
});

t.test('refuses in time what waits for more locked keys than can be looked at in time', async (t) => {
    const { statements, locked, clock, settled, publish } = acceptance();
    const keys = Array.from({ length: 2_000 }, (_, index) => `key ${index}`);
    for (const key of keys) {
        locked.add(key);
    }
    const ends: number[] = [];
    const held = keys.map(async (key) => {
        await publish(`${key} 1`);
        ends.push(clock.now);
    });
    while (clock.now < 24_000) {
        await new Promise(setImmediate);
    }
    const later = publish('key 1999 2');
    await Promise.all(held);
    t.ok(settled.every((text) => text.includes('could not be stored within 25000 ms')));
    t.ok(Math.min(...ends) >= 25_000 && Math.max(...ends) < 26_000, `the last of them after ${Math.max(...ends)} ms`);
    const looks = statements.filter(([, lockTimeout]) => lockTimeout > 0).length;
    t.ok(looks < 26_000 / 50, `${looks} looks`);
    locked.clear();
    await later;
    t.equal(settled.at(-1), 'key 1999 2');
    t.ok(clock.now < 27_000, 'what came later waits for no look at what was refused');
});

t.test('stores nothing that it has refused', async (t) => {
    const { statements, locked, clock, settled, publish } = acceptance();
    locked.add('a');
    const held = publish('a1');
    while (clock.now < 24_500) {
        await new Promise(setImmediate);
    }
    // It is free again while the last look at it goes on.
    locked.delete('a');
    await held;
    t.strictSame(settled, ['a1']);
    t.ok(clock.now >= 25_000);
    t.equal(statements.at(-1)?.[0], 'a1');
});

t.test('refuses alone what is refused, and all of a statement when the store is away', async (t) => {
    const { refused, statements, settled, publish } = acceptance();
    refused.add('a3');
    await Promise.all(['a1', 'a2', 'a3', 'a4', 'b1', 'b2'].map((id) => publish(id)));
    t.strictSame([...settled].sort(), ['a1', 'a2', 'a3: Refused: a3', 'a4', 'b1', 'b2']);
    t.strictSame(
        statements.slice(-3).map(([ids]) => ids),
        ['a2', 'a3', 'a4'],
    );

    settled.length = 0;
    await Promise.all(['a5', 'b3', 'away', 'a6', 'c1', 'c2'].map((id) => publish(id)));
    t.ok(settled.includes('away: away'));
    t.equal(settled.length, 6);
});

t.test('gives events with idempotency keys statements of their own, in their turn', async (t) => {
    const { statements, locked, settled, publish } = acceptance();
    const ids = ['a1', 'a2', 'a3', 'a4', 'a5'];
    const publishAll = () => Promise.all(ids.map((id) => publish(id, id === 'a3')));
    await publishAll();
    t.strictSame(
        statements.map(([ids]) => ids),
        ['a1', 'a2', 'a3', 'a4 a5'],
    );
    locked.add('a');
    const held = publishAll();
    await new Promise(setImmediate);
    locked.delete('a');
    await held;
    t.strictSame(settled, [...ids, ...ids]);
});

t.test('lets idempotency keys wait as order keys do, and what may be free goes before what is locked', async (t) => {
    const { statements, locked, clock, settled, publish, publishOnce } = acceptance();
    for (const key of ['a', 'b', 'c', 'd']) {
        locked.add(key);
    }
    const held = [...['a1', 'b1', 'c1', 'a2'].map((id) => publishOnce(id)), publish('d1')];
    while (clock.now < 5_000) {
        await new Promise(setImmediate);
    }
    const since = statements.length;
    const free = Array.from('efghij', (key) => `${key}1`);
    await Promise.all(free.map((id) => publishOnce(id)));
    t.strictSame(settled, free);
    const meanwhile = statements.slice(since).map(([ids]) => ids);
    t.ok(meanwhile.length <= 2 * free.length + 2, 'of two statements one is for them');
    t.ok(
        meanwhile.some((ids) => locked.has(ids[0] ?? '')),
        'and one for those that are locked',
    );
    t.notOk(
        statements.some(([ids]) => ids === 'a2'),
        'of a key one at a time',
    );

    settled.length = 0;
    locked.delete('a');
    await Promise.all([held[0], held[3]]);
    t.strictSame(settled, ['a1', 'a2']);
    await Promise.all(held);
    const refusal = (kind: string) =>
        `The event could not be stored within 25000 ms: an open transaction has its ${kind} key, or something else that it needs`;
    t.strictSame(settled.slice(2).sort(), [`b1: ${refusal('idempotency')}`, `c1: ${refusal('idempotency')}`, `d1: ${refusal('order')}`]);
});

t.test('lets events that are stored together wait so too, as a whole', async (t) => {
    const { statements, locked, settled, publishOnce, publishTogether } = acceptance();
    locked.add('a');
    const held = [publishTogether('a1', 'b1', 'c1', 'd1'), publishTogether('a2', 'e1'), publishTogether('a3')];
    await publishOnce('f1');
    await publishTogether('b2', 'f2');
    t.strictSame(settled, ['f1', 'b2 f2']);
    locked.delete('a');
    await Promise.all(held);
    t.strictSame(settled.slice(2).sort(), ['a1 b1 c1 d1', 'a2 e1', 'a3']);
    t.ok(
        statements.every(([ids]) => ['a1 b1 c1 d1', 'a2 e1', 'a3', 'f1', 'b2 f2'].includes(ids)),
        'a statement has all of them, whatever the limit, and nothing else',
    );

    settled.length = 0;
    locked.add('a');
    await publishTogether('a4', 'b4');
    t.match(settled, [
        /^The events could not be stored within 25000 ms: an open transaction has one of their keys, or something else that they need$/,
    ]);
});
