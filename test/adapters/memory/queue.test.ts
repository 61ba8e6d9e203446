import t from 'tap';
import { deliveryQueueContract } from '../../../adapters/contract/index.ts';
import { memoryQueue } from '../../../adapters/memory/index.ts';
import { tapTest } from '../contract/tap-test.ts';

deliveryQueueContract(tapTest(t), () => {
    let queue = memoryQueue();
    // Its jobs are gone with its process: what comes after a loss is a new one.
    const lasting = {
        ...queue,
        add: (...given: Parameters<typeof queue.add>) => queue.add(...given),
        hasLostJobs: async () => (await queue.hasLostJobs?.()) ?? false,
        work: (...given: Parameters<typeof queue.work>) => queue.work(...given),
        close: () => queue.close(),
    };
    return {
        queue: lasting,
        other: lasting,
        loseJobs() {
            queue = memoryQueue();
        },
    };
});
