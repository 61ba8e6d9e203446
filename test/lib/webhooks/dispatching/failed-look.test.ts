import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import type { HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryJob } from '../../../../lib/webhooks/dispatching/delivery-queue.ts';
import { dispatcher } from '../../../../lib/webhooks/dispatching/dispatcher.ts';

const retry = (index: number) =>
    ({ deliveryId: `d${index}`, exporterId: 'e', collector: 'default', attempt: 2, reservation: null }) as HandedOut;

t.test('retries that were handed out before a look failed go to the queue with the next look', async (t) => {
    const looks = [
        async () => Array.from({ length: 500 }, (_, index) => retry(index)),
        async () => {
            throw new Error('The store is away');
        },
        async () => [retry(500)],
    ];
    const [added, failed]: [string[], string[]] = [[], []];
    const looking = dispatcher({
        deliveries: {
            dispatch: async () => ({ handedOut: (await looks.shift()?.()) ?? [], waitsFor: [] }),
            sweep: async () => ({ lost: [], poisoned: [] }),
        },
        queue: { add: async (jobs: readonly DeliveryJob[]) => void added.push(...jobs.map(({ deliveryId }) => deliveryId)) },
        monotonic: () => performance.now(),
        window: 400,
        rate: null,
        breakerAfter: 10,
        readAhead: async () => {},
        onError: ({ message }: Error) => failed.push(message),
    } as unknown as Parameters<typeof dispatcher>[0]);
    looking.start();
    await until(() => failed.length === 1);
    t.strictSame(added, []);
    looking.wake();
    await until(() => looks.length === 0);
    await looking.stop();
    t.equal(added.length, 501);
    t.equal(new Set(added).size, 501);
});
