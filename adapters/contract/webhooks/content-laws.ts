import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { NewEvent } from '../../../lib/webhooks/events/new-event.ts';
import type { FormattedMessage } from '../../../lib/webhooks/messages/formatted-message.ts';
import { only, present } from '../assertions.ts';
import type { Laws } from '../register-laws.ts';
import { at, forAll, sampleEvent, type WebhookBench } from './fixture.ts';

const MESSAGE: FormattedMessage = {
    contentType: 'text/plain',
    headers: [['x-kind', '1']],
    body: '{"é":"\\u0000\\"\u2028🦉"}',
    failure: null,
};

/** JSON that a store which reads it may write otherwise. */
const BODIES: readonly string[] = [
    '{ "b" : 1e400,"a":-0.0, "b":"\u2028" }',
    String.raw`"\u0000 \ud800 \\ \" ]}, \/ \u00fc ü 🦉"`,
    '[ ]',
    'null',
    '12345678901234567890.10',
    `${'['.repeat(1000)}${']'.repeat(1000)}`,
];

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

    async 'keeps the body and the kind of each of many events whose bodies are JSON'(bench) {
        await bench.addExporter();
        await bench.setTime(at(3));
        const events = BODIES.map((body, index) => sampleEvent({ kind: `of_kind_${index % 2}`, body }));
        const accepted = await bench.deliveries.accept(events.map((event) => ({ ...forAll(event), isJson: true })));
        const contents = await Promise.all(accepted.map(async ({ deliveries }) => await contentOf(bench, only(deliveries))));
        assert.deepEqual(
            contents.map((content) => content?.event),
            events.map((event) => ({ ...event, createdAt: at(3), erasedAt: null })),
        );
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

/** As a process stores it that lacks the format of its exporter. */
const UNMADE: FormattedMessage = { contentType: 'application/json', headers: [], body: '', failure: 'It lacks the "format" é🦉' };

/** How messages are kept that are made after their acceptance. */
export const lateMessageLaws: Laws<WebhookBench> = {
    async 'keeps what is made afterwards, and sends it from then on'(bench) {
        const [delivery, other] = await acceptedTwice(bench, UNMADE);
        assert.deepEqual(await keep(bench, delivery, MESSAGE), MESSAGE);
        assert.deepEqual([await messageOf(bench, delivery), await messageOf(bench, other)], [MESSAGE, UNMADE]);
        const claims = await bench.claimDue();
        const sent = new Map(claims.map(({ deliveryId, message }) => [deliveryId, message]));
        assert.deepEqual([sent.get(delivery), sent.get(other)], [MESSAGE, UNMADE]);
    },

    async 'keeps the first of what is made afterwards'(bench) {
        const [delivery, other] = await acceptedTwice(bench, UNMADE);
        await keep(bench, delivery, MESSAGE);
        assert.deepEqual(await keep(bench, delivery, { ...MESSAGE, body: 'second', headers: [] }), MESSAGE);
        const made = ['a', 'b', 'c'].map((body) => ({ ...MESSAGE, body }));
        const kept = await Promise.all(made.map((message) => keep(bench, other, message)));
        const stored = await messageOf(bench, other);
        assert.deepEqual(kept, [stored, stored, stored]);
        assert.deepEqual(await messageOf(bench, delivery), MESSAGE);
    },

    async 'keeps nothing afterwards where a message was made, or has another failure'(bench) {
        for (const message of [MESSAGE, { ...UNMADE, failure: 'It cannot be made' }]) {
            const [delivery] = await acceptedTwice(bench, message);
            assert.deepEqual(await keep(bench, delivery, { ...MESSAGE, body: 'late' }), message);
            assert.deepEqual(await messageOf(bench, delivery), message);
        }
    },

    async 'keeps nothing afterwards where no message is'(bench) {
        const plain = only(only(await bench.deliveries.accept([await forOne(bench, null)])).deliveries);
        const accepted = only(await bench.deliveries.accept([await forOne(bench, UNMADE)]));
        const erased = only(accepted.deliveries);
        await bench.deliveries.erase(accepted.eventId);
        for (const delivery of [plain, erased]) {
            assert.equal(await keep(bench, delivery, MESSAGE), null);
            assert.equal(await messageOf(bench, delivery), null);
        }
        for (const id of [randomUUID(), 'no-uuid']) {
            assert.equal(await keep(bench, id, MESSAGE), null);
        }
    },
};

/** For an exporter of its own. */
async function forOne(bench: WebhookBench, message: FormattedMessage | null): Promise<NewEvent> {
    const { id: exporterId } = await bench.addExporter();
    return { event: sampleEvent(), recipients: { exporterId, message } };
}

/** The ids of two deliveries that have the message. */
async function acceptedTwice(bench: WebhookBench, message: FormattedMessage): Promise<readonly [string, string]> {
    await bench.setTime(at(0));
    const accepted = await bench.deliveries.accept([await forOne(bench, message), await forOne(bench, message)]);
    const [first, second] = accepted.map(({ deliveries }) => only(deliveries));
    return [present(first), present(second)];
}

async function keep({ deliveries: { messages } }: WebhookBench, delivery: string, message: FormattedMessage) {
    return await present(messages).keep(delivery, message, present(UNMADE.failure));
}

async function messageOf(bench: WebhookBench, delivery: string) {
    return present(await contentOf(bench, delivery)).message;
}

async function contentOf({ deliveries }: WebhookBench, id: string) {
    return await present(deliveries.content).call(deliveries, id);
}
