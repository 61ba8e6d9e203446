import t from 'tap';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { Acceptance } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { UnroutedEvent } from '../../../../lib/webhooks/events/event-routing.ts';
import { keyedAcceptance } from '../../../../lib/webhooks/events/keyed-acceptance.ts';

/** A store in which keys are locked or stand for other events. The key of an event is what comes behind the colon of its id. */
function acceptance(limit = 10) {
    const statements: string[] = [];
    const [locked, refused] = [new Set<string>(), new Set<string>()];
    let unlocked = (): void => {};
    const free = new Promise<void>((resolve) => (unlocked = resolve));
    const accepted = ({ id }: UnroutedEvent): Acceptance => ({ eventId: id, deliveries: [], handedOut: [] });
    const isLocked = ({ idempotency }: UnroutedEvent): boolean => locked.has(idempotency?.key ?? '');
    const accept = keyedAcceptance({
        async accept(events, lockTimeout) {
            const ids = events.map(({ id }) => id);
            statements.push(`${ids.join(' ')}${lockTimeout === undefined ? '' : ` within ${lockTimeout}`}`);
            await new Promise(setImmediate);
            if (ids.includes('away:g')) {
                throw new ScanwireError('UNAVAILABLE', 'away');
            }
            if (events.some(({ idempotency }) => refused.has(idempotency?.key ?? ''))) {
                throw new ScanwireError('CONFLICT', 'taken', { field: 'idempotencyKey' });
            }
            const isLeftOut = lockTimeout !== undefined && events.some(isLocked);
            return events.map((event) => ({ ...accepted(event), ...(isLeftOut && { locked: true }) }));
        },
        async acceptLocked(event) {
            statements.push(`${event.id} alone`);
            await (isLocked(event) ? free : undefined);
            return accepted(event);
        },
        limit,
    });
    const publish = async (id: string): Promise<string> => {
        const [, key] = id.split(':');
        const event = { id, owner: null, ...(key !== undefined && { idempotency: { key, digest: '' } }) } as UnroutedEvent;
        return await accept(event).then(
            ({ eventId }) => eventId,
            (error: Error) => `${id} is ${error.message}`,
        );
    };
    const publishAll = (ids: string) => Promise.all(ids.split(' ').map(publish));
    return { statements, locked, refused, unlocked: () => unlocked(), publish, publishAll };
}

t.test('events with keys share statements', async (t) => {
    const { statements, publishAll } = acceptance();
    t.strictSame(await publishAll('1:a 2:b 3:c 4:d'), ['1:a', '2:b', '3:c', '4:d']);
    t.strictSame(statements, ['1:a within 50', '2:b 3:c 4:d within 50']);
});

t.test('as many share a statement as may', async (t) => {
    const { statements, publishAll } = acceptance(2);
    await publishAll('1:a 2:b 3:c 4:d 5:e');
    t.strictSame(statements, ['1:a within 50', '2:b 3:c within 50', '4:d 5:e within 50']);
});

t.test('of a key there is one event at a time', async (t) => {
    const { statements, publishAll } = acceptance();
    await publishAll('1:a 2:b 3:a 4:a 5:c 6:c');
    t.strictSame(statements, ['1:a within 50', '2:b 3:a 5:c within 50', '4:a 6:c within 50']);
});

t.test('what is refused is refused alone, by few statements', async (t) => {
    const { statements, refused, publishAll } = acceptance(100);
    refused.add('9');
    const ids = Array.from({ length: 66 }, (_, index) => `${index}:${index}`);
    t.strictSame(
        await publishAll(ids.join(' ')),
        ids.map((id) => (id === '9:9' ? '9:9 is taken' : id)),
    );
    t.equal(statements.length, 1 + 1 + 2 * 6);
});

t.test('when the store is away all of a statement are refused, and those accepted before are not', async (t) => {
    const { statements, refused, publishAll } = acceptance();
    refused.add('c');
    const away = (error: string) => error.endsWith('is away');
    const answers = await publishAll('1:a 2:b 3:d 4:e 5:f 6:c');
    t.strictSame(answers, ['1:a', '2:b', '3:d', '4:e', '5:f', '6:c is taken']);
    statements.length = 0;
    t.ok((await publishAll('away:g')).every(away));
    t.equal(statements.length, 1);
});

t.test('a locked key is waited for alone, beside all others', async (t) => {
    const { statements, locked, unlocked, publish, publishAll } = acceptance();
    locked.add('a');
    const first = publishAll('1:b 2:c 3:a 4:d 5:a 6:a');
    const settled: string[] = [];
    void first.then(() => settled.push('first'));
    while (!statements.includes('6:a alone')) {
        await new Promise(setImmediate);
    }
    t.strictSame(statements, ['1:b within 50', '2:c 3:a 4:d within 50', '2:c alone', '3:a alone', '4:d alone', '5:a alone', '6:a alone']);
    const again = publish('7:a');
    t.equal(statements.at(-1), '7:a alone', 'without another try');
    t.strictSame(await publishAll('8:e 9:f'), ['8:e', '9:f']);
    t.strictSame(settled, []);
    unlocked();
    t.strictSame(await first, ['1:b', '2:c', '3:a', '4:d', '5:a', '6:a']);
    t.equal(await again, '7:a');
    locked.clear();
    await publish('10:a');
    t.equal(statements.at(-1), '10:a within 50', 'as before, once it is free');
});
