import t from 'tap';
import { deliveryQueueContract } from '../../../adapters/contract/index.ts';
import { memoryQueue } from '../../../adapters/memory/index.ts';
import { tapTest } from '../contract/tap-test.ts';

deliveryQueueContract(tapTest(t), () => {
    const queue = memoryQueue();
    return { queue, other: queue };
});
