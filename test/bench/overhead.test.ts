import t from 'tap';
import { ownCheckout } from '../../bench/checkout.ts';
import { listener } from '../../bench/listening.ts';
import { FORMATS, REFUSED } from '../../bench/overhead.ts';
import { withSender } from '../../bench/senders.ts';
import { countOf, DELIVERED } from '../support/sender-rows.ts';

for (const keepResponses of [true, false]) {
    t.test(`what is refused at first comes again, and the answer is ${keepResponses ? '' : 'not '}kept`, async (t) => {
        const host = { ...REFUSED.host, options: { keepResponses }, notices: true };
        await withSender({ checkout: await ownCheckout(), kind: 'servers', ...REFUSED, host }, async (sender) => {
            await sender.burst(8);
            await sender.finished(8);
            t.equal(await countOf(sender, DELIVERED), 8);
            t.equal(await countOf(sender, `${DELIVERED} and attempts = 2`), 2);
            t.equal(await countOf(sender, 'scanwire.attempt_responses'), keepResponses ? 2 : 0);
            t.equal(await countOf(sender, 'scanwire.exporters'), 2);
        });
    });
}

t.test('a message is known without a field of its id, and other processes on the database are of the deployment', async (t) => {
    const checkout = await ownCheckout();
    const host = { settings: { ...FORMATS.slack }, options: { rate: 1_000 } };
    await withSender({ checkout, kind: 'servers', host }, async (sender) => {
        const other = await listener(checkout, sender, host);
        try {
            await sender.burst(6);
            await sender.finished(6);
            t.equal(await countOf(sender, DELIVERED), 6);
            t.equal(await countOf(sender, `scanwire.exporters where format = 'slack'`), 1);
            t.equal(await countOf(sender, 'scanwire.worker_sessions'), 2);
        } finally {
            await other.stop();
        }
    });
});
