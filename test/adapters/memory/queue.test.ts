import t from 'tap';
import { deliveryQueueContract } from '../../../adapters/contract/delivery-queue.ts';
import { memoryQueue } from '../../../adapters/memory/queue.ts';
import { tapTest } from '../contract/tap-test.ts';

deliveryQueueContract(tapTest(t), async () => {
    const queue = memoryQueue();
    return { queue, other: queue, stop: async () => {} };
});
