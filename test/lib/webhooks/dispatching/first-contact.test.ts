import t from 'tap';
import { ScanwireError } from '../../../../lib/errors.ts';
import { type DeliveryQueue, firstContact, RETRIES } from '../../../../lib/webhooks/dispatching/delivery-queue.ts';
import { simulatedTime } from '../../../support/simulated-time.ts';

const away = new ScanwireError('UNAVAILABLE', 'Redis is away');

/** A queue whose server is as it is told, and how often it was looked for. */
function queueOf(answers: readonly (Error | null)[]) {
    const looks: number[] = [];
    const ready = async (): Promise<void> => {
        const answer = answers[looks.length];
        looks.push(looks.length);
        if (answer) {
            throw answer;
        }
    };
    return { looks, queue: { ready } as unknown as DeliveryQueue };
}

t.test('looks for a server that is away until it is there, twice as long after each time, and says of each why', async (t) => {
    const time = simulatedTime(t);
    const wrong = new ScanwireError('MISCONFIGURED', 'Redis evicts keys');
    const { looks, queue } = queueOf([away, away, wrong, null]);
    const told: Error[] = [];
    let reached = 0;
    await firstContact(queue, (error) => told.push(error)).start(() => {
        reached += 1;
    });
    await time.advance(RETRIES.first - 1);
    t.equal(looks.length, 1);
    await time.advance(1);
    t.equal(looks.length, 2);
    await time.advance(2 * RETRIES.first);
    t.equal(looks.length, 3);
    t.equal(reached, 0);
    await time.advance(4 * RETRIES.first);
    t.strictSame([looks.length, reached], [4, 1]);
    t.strictSame(told, [away, away, wrong]);
    await time.advance(60_000);
    t.equal(looks.length, 4);
});

t.test('looks no more once it has ended', async (t) => {
    const time = simulatedTime(t);
    const { looks, queue } = queueOf([away, null]);
    const contact = firstContact(queue, () => {});
    await contact.start(() => t.fail('reached'));
    contact.stop();
    await time.advance(60_000);
    t.equal(looks.length, 1);
});

t.test('calls nobody who has ended while it looked, and does not look again', async (t) => {
    const time = simulatedTime(t);
    for (const answer of [null, away]) {
        let end = (): void => {};
        let looks = 0;
        const ready = async (): Promise<void> => {
            looks += 1;
            if (looks === 1) {
                throw away;
            }
            end();
            if (answer) {
                throw answer;
            }
        };
        const contact = firstContact({ ready } as unknown as DeliveryQueue, () => {});
        end = contact.stop;
        await contact.start(() => t.fail('reached'));
        await time.advance(60_000);
        t.equal(looks, 2);
    }
});

t.test('refuses a server that is there and would lose jobs', async (t) => {
    const { queue } = queueOf([new ScanwireError('MISCONFIGURED', 'Redis evicts keys')]);
    await t.rejects(
        firstContact(queue, () => {}).start(() => {}),
        { code: 'MISCONFIGURED' },
    );
});
