import t from 'tap';
import { byteBudget } from '../../../lib/webhooks/byte-budget.ts';

t.test('waits for as many bytes as are wanted', async (t) => {
    const budget = byteBudget(100);
    t.equal(await budget.free(30), 100);
    budget.take(80);
    let free: number | null = null;
    const waiting = budget.free(30).then((bytes) => {
        free = bytes;
    });
    budget.giveBack(5);
    t.equal(await budget.free(25), 25);
    t.equal(free, null, 'there are 25 only');
    budget.giveBack(5);
    await waiting;
    t.equal(free, 30);
});

t.test('keeps nobody waiting for more than there will ever be', async (t) => {
    const budget = byteBudget(100);
    t.equal(await budget.free(1000), 100);
    budget.take(1000);
    budget.giveBack(1000);
    t.equal(await budget.free(1000), 100);
});
