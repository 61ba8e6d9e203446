import t from 'tap';
import { present } from '../../../../adapters/contract/assertions.ts';
import { countLaws, discardedCountLaws } from '../../../../adapters/contract/webhooks/count-laws.ts';
import { type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'counts all that have ended, and what has not up to a number': (_, deliveries) => ({
        deliveries: { count: async (filter, max) => Math.min(max, await deliveries.count(filter, max)) },
    }),
    'counts what has ended as it would list it, whatever becomes of it': (_, deliveries) => {
        const replayed = new Set<string>();
        return {
            deliveries: {
                async replay(id) {
                    replayed.add(id);
                    return await deliveries.replay(id);
                },
                async count(filter, max) {
                    return (await deliveries.count(filter, max)) + (filter.state === 'delivered' ? replayed.size : 0);
                },
            },
        };
    },
};

proveWebhookLaws(t, countLaws, MUTANTS);

proveWebhookLaws(t, discardedCountLaws, {
    'counts what was discarded as it would list it': (_, deliveries) => {
        let discarded = 0;
        return {
            deliveries: {
                async discard(id) {
                    discarded += 1;
                    return await present(deliveries.discard?.(id));
                },
                async count(filter, max) {
                    return (await deliveries.count(filter, max)) - (filter.state === 'cancelled' ? discarded : 0);
                },
            },
        };
    },
});
