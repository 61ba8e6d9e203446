import t from 'tap';
import { until } from '../../adapters/contract/assertions.ts';
import type { HandedOut } from '../../lib/webhooks/deliveries/delivery-store.ts';
import { type Dispatcher, dispatcher } from '../../lib/webhooks/dispatching/dispatcher.ts';
import { lookoutOf } from '../../lib/webhooks/dispatching/outlook.ts';

const LOOKS = 200;

for (const ordered of [false, true]) {
    t.test(`retries reach the queue while attempts of an ${ordered ? 'ordered ' : ''}exporter end without a pause`, async (t) => {
        let looks = 0;
        let queued = 0;
        let queuedMeanwhile = 0;
        const retry = (): HandedOut => {
            return { deliveryId: String(looks), exporterId: 'fails', collector: 'default', attempt: 2, reservation: null } as HandedOut;
        };
        const deliveries = {
            async dispatch() {
                looks += 1;
                queuedMeanwhile = queued;
                if (looks < LOOKS) {
                    dispatching.attemptEnded({ id: 'busy', ordered }, 10);
                }
                return looks < LOOKS ? { handedOut: [retry()], waitsFor: ['busy'] } : { handedOut: [], waitsFor: [] };
            },
            sweep: async () => ({ lost: [], poisoned: [] }),
        };
        const queue = {
            async add(jobs: readonly unknown[]) {
                queued += jobs.length;
            },
        };
        const parts = {
            deliveries,
            queue,
            lookout: lookoutOf(() => performance.now()),
            monotonic: () => performance.now(),
            window: 4,
            rate: null,
            breakerAfter: 3,
            readAhead: async () => {},
        };
        const context = { ...parts, onError: (error: Error) => t.fail(error.message), onWarning: () => {}, onEvent: () => {} };
        const dispatching: Dispatcher = dispatcher(context as unknown as Parameters<typeof dispatcher>[0]);
        dispatching.start();
        await until(() => looks >= LOOKS);
        t.ok(queuedMeanwhile > LOOKS / 2, `${queuedMeanwhile} of ${LOOKS}`);
        await dispatching.stop();
        t.equal(queued, LOOKS - 1);
    });
}
