import t from 'tap';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { lookoutOf } from '../../../../lib/webhooks/dispatching/outlook.ts';
import { replaySteps } from '../../../../lib/webhooks/dispatching/replay-steps.ts';

t.test('a step whose timer ends within the millisecond before it is made all the same', async (t) => {
    let now = 10.7;
    let made = 0;
    const replays = {
        advance: async () => {
            made += 1;
            return true;
        },
    };
    const deliveries = { replays } as unknown as DeliveryStore;
    const steps = replaySteps({ deliveries, lookout: lookoutOf(() => now), monotonic: () => now }, () => undefined);
    t.equal(await steps.advance(), true);
    const wait = steps.addUntilNextStep(true, { atOnce: 0, inTurns: [] }) as number;

    now += 1;
    t.equal(await steps.advance(), false, 'somebody woke the dispatcher');
    now += Math.floor(wait) - 2;
    t.equal(await steps.advance(), true, 'a timer of whole milliseconds');
    t.equal(made, 2);
});
