import t from 'tap';
import { contentLaws, lateMessageLaws } from '../../../../adapters/contract/webhooks/content-laws.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { DeliveryContent } from '../../../../lib/webhooks/events/new-event.ts';
import type { FormattedMessage, MessageStore } from '../../../../lib/webhooks/messages/formatted-message.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

function showing(change: (content: DeliveryContent | null) => DeliveryContent | null): Mutant {
    return (_, deliveries) => ({ deliveries: { content: async (id) => change((await deliveries.content?.(id)) ?? null) } });
}

const rewritingBodies = showing(
    (content) => content && { ...content, event: { ...content.event, body: JSON.stringify(JSON.parse(content.event.body)) } },
);

/** Keeps messages in another way. */
function keeping(change: (honest: MessageStore['keep']) => MessageStore['keep']): Mutant {
    return (_, { messages }) => ({ deliveries: { messages: { keep: change((messages as MessageStore).keep) } } });
}

/** Shows what is made afterwards to who makes it, and sends it, as the last one has made it. */
const lastOne: Mutant = (_, deliveries) => {
    const made = new Map<string, FormattedMessage>();
    const keep: MessageStore['keep'] = async (id, message, failure) => {
        const stored = (await deliveries.messages?.keep(id, message, failure)) ?? null;
        made.set(id, message);
        return stored && message;
    };
    const content: DeliveryStore['content'] = async (id) => {
        const stored = (await deliveries.content?.(id)) ?? null;
        return stored && { ...stored, message: made.get(id) ?? stored.message };
    };
    return { deliveries: { messages: { keep }, content } };
};

const MUTANTS: Mutants = {
    'shows what a delivery sends, as it was accepted': rewritingBodies,
    'keeps the body and the kind of each of many events whose bodies are JSON': rewritingBodies,
    'shows nothing of a body that was erased': showing((content) => content && { ...content, event: { ...content.event, body: '{}' } }),
    'shows nothing of a delivery that does not exist': showing(
        (content) =>
            content ?? { exporterId: '', event: { id: '', kind: '', body: '', createdAt: new Date(), erasedAt: null }, message: null },
    ),
};

proveWebhookLaws(t, contentLaws, MUTANTS);

proveWebhookLaws(t, lateMessageLaws, {
    'keeps what is made afterwards, and sends it from then on': keeping(() => async (_, message) => message),
    'keeps the first of what is made afterwards': lastOne,
    'keeps nothing afterwards where a message was made, or has another failure': lastOne,
    'keeps nothing afterwards where no message is': keeping(
        (keep) =>
            async (...given) =>
                (await keep(...given)) ?? given[1],
    ),
});
