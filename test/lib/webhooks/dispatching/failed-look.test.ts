import t from 'tap';
import { until } from '../../../../adapters/contract/assertions.ts';
import type { HandedOut } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryJob } from '../../../../lib/webhooks/dispatching/delivery-queue.ts';
import { dispatcher } from '../../../../lib/webhooks/dispatching/dispatcher.ts';
import { lookoutOf } from '../../../../lib/webhooks/dispatching/outlook.ts';

const retry = (index: number) =>
    ({ deliveryId: `d${index}`, exporterId: 'e', collector: 'default', attempt: 2, reservation: null }) as HandedOut;

/** A dispatcher whose looks go as they are told, and what it has put into the queue; its last look finds one retry more. */
function looking(more: object = {}) {
    const looks = [
        async () => Array.from({ length: 500 }, (_, index) => retry(index)),
        async () => {
            throw new Error('The store is away');
        },
        async () => [retry(500)],
    ];
    const [added, failed]: [string[], string[]] = [[], []];
    const dispatching = dispatcher({
        deliveries: {
            dispatch: async () => ({ handedOut: (await looks.shift()?.()) ?? [], waitsFor: [] }),
            sweep: async () => ({ lost: [], poisoned: [] }),
            ...more,
        },
        queue: { add: async (jobs: readonly DeliveryJob[]) => void added.push(...jobs.map(({ deliveryId }) => deliveryId)) },
        lookout: lookoutOf(() => performance.now()),
        monotonic: () => performance.now(),
        window: 400,
        rate: null,
        breakerAfter: 10,
        readAhead: async () => {},
        onError: ({ message }: Error) => failed.push(message),
    } as unknown as Parameters<typeof dispatcher>[0]);
    dispatching.start();
    return { dispatching, looks, added, failed };
}

for (const [title, more] of [
    ['retries that were handed out before a look failed go to the queue with the next look', {}],
    ['so they do while a replay is under way, before its next step', { replays: { advance: async () => true } }],
] as const) {
    t.test(title, async (t) => {
        const { dispatching, looks, added, failed } = looking(more);
        await until(() => failed.length === 1);
        t.strictSame(added, []);
        dispatching.wake();
        await until(() => looks.length === 0);
        await dispatching.stop();
        t.equal(added.length, 501);
        t.equal(new Set(added).size, 501);
    });
}

t.test('and at a stop', async (t) => {
    const { dispatching, added, failed } = looking();
    await until(() => failed.length === 1);
    await dispatching.stop();
    t.equal(added.length, 500);
});
