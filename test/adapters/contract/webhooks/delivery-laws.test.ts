import t from 'tap';
import { deliveryLaws } from '../../../../adapters/contract/webhooks/delivery-laws.ts';
import { at } from '../../../../adapters/contract/webhooks/fixture.ts';
import { ScanwireError } from '../../../../lib/errors.ts';
import type { DeliveryQuery } from '../../../../lib/webhooks/deliveries/deliveries.ts';
import type { Delivery, DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'knows nothing of a delivery that does not exist': (_, deliveries) => ({
        deliveries: {
            replay: (id) => deliveries.replay(id).catch(() => Promise.reject(new ScanwireError('CONFLICT', 'it is under way'))),
        },
    }),
    'lists the newest first, page by page': (_, deliveries) => ({
        deliveries: { list: async (query) => (await deliveries.list(query)).toReversed() },
    }),
    'lists the deliveries of a state': listing(({ state: _, ...query }) => query),
    'lists the deliveries of an exporter': listing(({ exporterId: _, ...query }) => query),
    'lists the deliveries of an outcome': listing(({ outcome: _, ...query }) => query),
    'lists the deliveries of a kind, and those of an event': listing(({ eventId: _, ...query }) => query),
    'lists the deliveries of a span of time': listing(({ until: _, ...query }) => query),
    'counts what it would list, up to a number': (_, deliveries) => ({
        deliveries: { count: (filter) => deliveries.count(filter, Number.POSITIVE_INFINITY) },
    }),
    'lists attempts first to last': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).toReversed() },
    }),
    'restarts the retry schedule for a replayed delivery': (_, deliveries) => ({
        deliveries: {
            claim: async (requests, session) =>
                (await deliveries.claim(requests, session)).map((claim) => claim && { ...claim, attemptSinceReplay: claim.attempt }),
        },
    }),
    'tries a replayed delivery like a fresh one': (_, deliveries) => ({
        deliveries: {
            dispatch: async (options) => {
                const { handedOut, ...left } = await deliveries.dispatch({ ...options, window: options.window + 1 });
                return { handedOut: handedOut.slice(-options.window), ...left };
            },
        },
    }),
    'tries what waits for its next try at once when it is replayed': (_, deliveries) => ({
        deliveries: {
            replay: async (id) => {
                const { state, dueAt } = (await deliveries.get(id)) as Delivery;
                return state === 'pending' ? ({ ...(await deliveries.get(id)), dueAt } as Delivery) : await deliveries.replay(id);
            },
        },
    }),
    'replays a test as a single attempt': (_, deliveries) => ({
        deliveries: {
            claim: async (requests, session) =>
                (await deliveries.claim(requests, session)).map((claim) => claim && { ...claim, singleAttempt: claim.attempt === 1 }),
        },
    }),
    'refuses to replay what is under way': (_, deliveries) => ({ deliveries: { replay: replayAnything(deliveries) } }),
    'refuses to replay for an exporter that was removed': (_, deliveries) => ({ deliveries: { replay: replayAnything(deliveries) } }),
};

proveWebhookLaws(t, deliveryLaws, MUTANTS);

function listing(change: (query: DeliveryQuery) => DeliveryQuery): Mutant {
    return (_, deliveries) => ({ deliveries: { list: (query) => deliveries.list(change(query)) } });
}

function replayAnything(deliveries: DeliveryStore): DeliveryStore['replay'] {
    return async (id) => {
        const delivery = await deliveries.get(id);
        return { ...(delivery as Delivery), state: 'pending', dueAt: at(0) };
    };
}
