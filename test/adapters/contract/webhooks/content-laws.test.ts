import t from 'tap';
import { contentLaws } from '../../../../adapters/contract/webhooks/content-laws.ts';
import type { DeliveryContent } from '../../../../lib/webhooks/events/new-event.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

function showing(change: (content: DeliveryContent | null) => DeliveryContent | null): Mutant {
    return (_, deliveries) => ({ deliveries: { content: async (id) => change((await deliveries.content?.(id)) ?? null) } });
}

const MUTANTS: Mutants = {
    'shows what a delivery sends, as it was accepted': showing(
        (content) => content && { ...content, event: { ...content.event, body: JSON.stringify(JSON.parse(content.event.body)) } },
    ),
    'shows nothing of a body that was erased': showing((content) => content && { ...content, event: { ...content.event, body: '{}' } }),
    'shows nothing of a delivery that does not exist': showing(
        (content) =>
            content ?? { exporterId: '', event: { id: '', kind: '', body: '', createdAt: new Date(), erasedAt: null }, message: null },
    ),
};

proveWebhookLaws(t, contentLaws, MUTANTS);
