import assert from 'node:assert/strict';
import { assertFields, ids, only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, failure, forAll, sampleEvent, success, type WebhookBench } from './fixture.ts';
import { accept, addOrdered, deliverAll } from './ordering-laws.ts';

/** What is accepted for exporters that were stopped by an outcome. */
export const holdingLaws: Laws<WebhookBench> = {
    async 'holds what is accepted for an exporter that an outcome has stopped, and sends none of it'(bench) {
        const id = await stoppedByOutcome(bench);
        const held = only(await bench.publishAt(at(100)));
        await bench.assertDelivery(held, { exporterId: id, state: 'held', attempts: 0, finishedAt: null });
        await bench.exporters.update(id, { state: 'running', stopReason: null });
        assert.equal((await bench.exporters.health(id))?.backlog.waiting, 1, 'the one that was tried');
        assert.ok(!(await bench.dispatchedIds({ now: at(200) })).includes(held));
        assert.deepEqual(
            (await bench.listed({ state: 'held' })).map((one) => one.id),
            [held],
        );
    },

    async 'hands out at once nothing that it holds'(bench) {
        await stoppedByOutcome(bench);
        const handOut = { window: 10, breakerAfter: 3, beginWithin: 1000 };
        const [accepted] = await bench.deliveries.accept([forAll(sampleEvent())], { handOut });
        assert.deepEqual([accepted?.handedOut.length, accepted?.deliveries.length], [0, 1]);
    },

    async 'sends what it held once that is replayed'(bench) {
        const id = await stoppedByOutcome(bench);
        const body = '{"title":"held"}';
        const held = only(await bench.publishAt(at(100), { body }));
        await bench.exporters.update(id, { state: 'running', stopReason: null });
        assertFields(await bench.replay(held, at(200)), { state: 'pending', dueAt: at(200) });
        const claims = await bench.claimDue({ now: at(200) });
        const claimed = present(claims.find(({ deliveryId }) => deliveryId === held));
        assert.equal(claimed.event.body, body);
        await bench.record([success(claimed)], at(201));
        await bench.assertDelivery(held, { state: 'delivered', attempts: 1 });
    },

    async 'holds nothing for an exporter that a user has stopped'(bench) {
        const stopped = await bench.addExporter({ state: 'stopped' });
        const id = await stoppedByOutcome(bench);
        await bench.exporters.update(id, { state: 'stopped', stopReason: null });
        assert.deepEqual(await bench.publishAt(at(100)), []);
        assert.deepEqual(await bench.listed({ exporterId: stopped.id }), []);
    },

    async 'hands out a test of an exporter that an outcome has stopped'(bench) {
        const id = await stoppedByOutcome(bench);
        const test = await bench.publishTest(id, at(100));
        assert.deepEqual(await bench.dispatchedIds({ now: at(100) }), [test]);
    },

    async 'ends what it held with its exporter and with its event'(bench) {
        const id = await stoppedByOutcome(bench);
        const [erased, cancelled] = [only(await bench.publishAt(at(100))), only(await bench.publishAt(at(101)))];
        const { eventId } = present(await bench.deliveries.get(erased));
        await bench.setTime(at(150));
        assertFields(await bench.deliveries.erase(eventId), { ended: 1 });
        await bench.assertDelivery(erased, { state: 'erased', finishedAt: at(150) });
        await bench.remove(id, at(200));
        await bench.assertDelivery(cancelled, { state: 'cancelled', finishedAt: at(200) });
        await bench.assertDelivery(erased, { state: 'erased', finishedAt: at(150) });
    },
};

/** The same of exporters that choose. */
export const chosenHoldingLaws: Laws<WebhookBench> = {
    async 'holds what an exporter has chosen that an outcome has stopped'(bench) {
        const id = await stoppedByOutcome(bench);
        await bench.update(id, { kinds: ['idr_*'] }, at(50));
        const { exporters } = await present(bench.exporters.subscribers)();
        assert.deepEqual(ids(exporters), [id], 'it is told among those that choose');
        await bench.setTime(at(100));
        const subscribers = [{ exporterId: id, message: null }];
        const [accepted] = await bench.deliveries.accept([{ event: sampleEvent(), recipients: { types: [], subscribers } }]);
        const held = only(present(accepted).deliveries);
        await bench.assertDelivery(held, { exporterId: id, state: 'held', attempts: 0, finishedAt: null });
    },
};

/** The same of exporters that are ordered. */
export const heldOrderLaws: Laws<WebhookBench> = {
    async 'keeps in order what it held while an exporter was stopped, once that is replayed'(bench) {
        const exporter = await addOrdered(bench);
        await bench.update(exporter.id, { state: 'stopped', stopReason: 'It is gone' }, at(0));
        const held = await accept(bench, ['a', 'a']);
        await bench.update(exporter.id, { state: 'running', stopReason: null }, at(10));
        const [third] = await accept(bench, ['a']);
        assert.deepEqual(await bench.dispatchedIds({ now: at(10) }), [third], 'what is held counts for nothing');
        for (const id of held.toReversed()) {
            await bench.replay(id, at(20));
        }
        assert.deepEqual(await bench.dispatchedIds({ now: at(20) }), []);
        await bench.record([failure(only(await bench.claim([present(third)], at(20))), 0)], at(30));
        assert.deepEqual(await deliverAll(bench, 30), [[held[0]], [held[1]], [third]]);
    },
};

/** What a store does that holds nothing. */
export const notHoldingLaws: Laws<WebhookBench> = {
    async 'accepts nothing for an exporter that an outcome has stopped where it holds nothing'(bench) {
        const id = await stoppedByOutcome(bench);
        const before = await bench.listed();
        assert.deepEqual(await bench.publishAt(at(100)), []);
        assert.deepEqual(await bench.listed(), before);
        await bench.exporters.update(id, { state: 'running', stopReason: null });
        assert.equal((await bench.publishAt(at(200))).length, 1);
    },
};

/** An exporter, one delivery of which failed so that it was stopped, and is due. */
async function stoppedByOutcome(bench: WebhookBench): Promise<string> {
    const { id } = await bench.addExporter();
    await bench.publish({});
    const claimed = only(await bench.claimDue());
    await bench.record([failure(claimed, 0, { stopReason: 'It is gone' })], at(10));
    return id;
}
