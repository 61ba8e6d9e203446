import t from 'tap';
import { timeSlice } from '../../lib/clock.ts';

t.test('work yields to the event loop when its time slice is over, and not before', async (t) => {
    const yieldIfDue = timeSlice();
    t.equal(yieldIfDue(), null);

    let others = 0;
    setImmediate(() => {
        others += 1;
    });
    const startedAt = performance.now();
    while (performance.now() - startedAt < 3) {
        // Works without waiting.
    }

    await yieldIfDue();
    t.equal(others, 1);
    t.equal(yieldIfDue(), null);
});
