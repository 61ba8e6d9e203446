import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, sampleEvent, type WebhookBench } from './fixture.ts';

const MESSAGE: FormattedMessage = {
    contentType: 'text/plain',
    headers: [['x-kind', '1']],
    body: '{"é":"\\u0000\\"\u2028🦉"}',
    failure: null,
};

/** What people see of what a delivery sends. */
export const contentLaws: Laws<WebhookBench> = {
    async 'shows what a delivery sends, as it was accepted'(bench) {
        const { id: exporterId } = await bench.addExporter();
        await bench.setTime(at(3));
        const event = sampleEvent({ kind: 'of_a_kind', body: '{ "a": 1e400, "a": "\u2028" }' });
        const message = MESSAGE;
        const accepted = await bench.deliveries.accept([
            { event, recipients: { types: ['investigation'] } },
            { event: sampleEvent(), recipients: { exporterId, message } },
        ]);
        const [plain, formatted] = await Promise.all(accepted.map(async ({ deliveries }) => await contentOf(bench, only(deliveries))));
        assert.deepEqual(plain, { exporterId, event: { ...event, createdAt: at(3), erasedAt: null }, message: null });
        assert.deepEqual(formatted?.message, message);
    },

    async 'shows nothing of a body that was erased'(bench) {
        const { id: exporterId } = await bench.addExporter();
        await bench.setTime(at(0));
        const accepted = only(await bench.deliveries.accept([{ event: sampleEvent(), recipients: { exporterId, message: MESSAGE } }]));
        await bench.setTime(at(5));
        await bench.deliveries.erase(accepted.eventId);
        const { event, message } = present(await contentOf(bench, only(accepted.deliveries)));
        assert.deepEqual([event.body, event.erasedAt, message], ['', at(5), null]);
    },

    async 'shows nothing of a delivery that does not exist'(bench) {
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.equal(await contentOf(bench, id), null);
        }
    },
};

async function contentOf({ deliveries }: WebhookBench, id: string) {
    return await present(deliveries.content).call(deliveries, id);
}
