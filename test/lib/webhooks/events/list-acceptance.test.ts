import t from 'tap';
import type { Acceptance } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { UnroutedEvent } from '../../../../lib/webhooks/events/event-routing.ts';
import { listAcceptance } from '../../../../lib/webhooks/events/list-acceptance.ts';

/** A store in which keys are locked. An event has its id for an order key, behind a `#` for an idempotency key. */
function acceptance() {
    const statements: string[] = [];
    const [locked, refused] = [new Set<string>(), new Set<string>()];
    let unlocked = (): void => {};
    const free = new Promise<void>((resolve) => (unlocked = resolve));
    const accepted = (events: readonly UnroutedEvent[], isLocked: boolean) =>
        events.map(({ id }): Acceptance => ({ eventId: id, deliveries: [], handedOut: [], ...(isLocked && { locked: true }) }));
    const accept = listAcceptance({
        async accept(events, lockTimeout) {
            const ids = events.map(({ id }) => id);
            statements.push(`${ids.join(' ')} within ${lockTimeout}`);
            await new Promise(setImmediate);
            if (ids.some((id) => refused.has(id))) {
                throw new Error(`Refused: ${ids.join(' ')}`);
            }
            return accepted(
                events,
                ids.some((id) => locked.has(id)),
            );
        },
        async acceptLocked(events) {
            statements.push(`${events.map(({ id }) => id).join(' ')} behind others`);
            await free;
            return accepted(events, false);
        },
    });
    const event = (id: string) =>
        ({ id, owner: null, ...(id.startsWith('#') ? { idempotency: { key: id, digest: '' } } : { orderKey: id }) }) as UnroutedEvent;
    const publishAll = async (ids: string): Promise<string> => {
        const answers = await accept(ids.split(' ').map(event));
        return answers.map(({ eventId }) => eventId).join(' ');
    };
    return { statements, locked, refused, unlocked: () => unlocked(), publishAll };
}

t.test('a list whose keys are free is stored by its first statement, two at a time', async (t) => {
    const { statements, refused, publishAll } = acceptance();
    refused.add('c');
    const lists = [publishAll('#a b'), publishAll('c'), publishAll('#d')];
    t.equal(statements.length, 2);
    t.equal(await lists[0], '#a b');
    await t.rejects(lists[1] as Promise<string>, { message: 'Refused: c' });
    t.equal(await lists[2], '#d');
    t.strictSame(statements, ['#a b within 50', 'c within 50', '#d within 50']);
});

t.test('what has a key of a list that waits waits at once, until that one is stored', async (t) => {
    const { statements, locked, unlocked, publishAll } = acceptance();
    locked.add('#a');
    const held = [publishAll('b #a'), publishAll('c')];
    await held[1];
    await new Promise(setImmediate);
    held.push(publishAll('#a'), publishAll('b'), publishAll('#b'));
    await held[4];
    t.strictSame(statements.splice(0, 3), ['b #a within 50', 'c within 50', 'b #a behind others']);
    t.strictSame(statements.sort(), ['#a behind others', '#b within 50', 'b behind others']);

    locked.clear();
    unlocked();
    t.strictSame(await Promise.all(held), ['b #a', 'c', '#a', 'b', '#b']);
    statements.length = 0;
    await publishAll('#a b');
    t.strictSame(statements, ['#a b within 50']);
});
