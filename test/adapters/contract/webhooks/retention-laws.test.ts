import t from 'tap';
import { ids } from '../../../../adapters/contract/assertions.ts';
import {
    retainedHeldLaws,
    retainedKeyLaws,
    retainedReplayLaws,
    retentionLaws,
} from '../../../../adapters/contract/webhooks/retention-laws.ts';
import type { Attempt } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import type { Expired, RetentionStore } from '../../../../lib/webhooks/deliveries/retention.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

/** Stores whose retention is wrong in some way. */
function retaining(change: (honest: RetentionStore) => Partial<RetentionStore>): Mutant {
    return (_, deliveries) => {
        const honest = deliveries.retention as RetentionStore;
        return { deliveries: { retention: { ...honest, ...change(honest) } } };
    };
}

/** A turn that removes nothing. */
async function* nothing(): AsyncGenerator<Expired> {
    yield { deliveries: 0, events: 0 };
}

/** Removes what is so many milliseconds younger too. */
function early(milliseconds: number): Mutant {
    return retaining((honest) => ({ expire: (keepFor) => honest.expire(keepFor - milliseconds) }));
}

/** Takes events from what has not ended. */
const erasing: Mutant = (_, deliveries) => ({
    deliveries: {
        retention: {
            begin: async () => true,
            async *expire(keepFor) {
                for (const { eventId } of await deliveries.list({ limit: 100 })) {
                    await deliveries.erase(eventId);
                }
                yield* (deliveries.retention as RetentionStore).expire(keepFor);
            },
        },
    },
});

const MUTANTS: Mutants = {
    'begins a turn once in its time, whoever asks': retaining(() => ({ begin: async () => true })),
    'begins a turn where the last one began by a clock that was ahead': retaining((honest) => {
        let hasBegun = false;
        return {
            async begin(every) {
                hasBegun = !hasBegun && (await honest.begin(every));
                return hasBegun;
            },
        };
    }),
    'removes deliveries that ended long enough ago, with their attempts': (_, deliveries) => ({
        deliveries: {
            async attempts(id) {
                const attempts = await deliveries.attempts(id);
                return (await deliveries.get(id)) === null ? [{ number: 1 } as Attempt] : attempts;
            },
        },
    }),
    'keeps what has not ended, however old it is, with its event': erasing,
    'keeps the event of what waits, also behind what a clock that was ahead accepted': erasing,
    'removes an event a day after its deliveries may go, unless one is left': early(1),
    'removes an event that nobody wanted': early(1),
};

const MUTANTS_OF_REPLAYS: Mutants = {
    'goes on to number and to replay what comes after': (_, deliveries) => ({
        deliveries: { list: async (query) => (await deliveries.list(query)).toReversed() },
    }),
    'removes replays that ended long enough ago, and no other': early(1),
};

proveWebhookLaws(t, retainedKeyLaws, {
    'frees the key of a removed event': (_, deliveries) => {
        const accepted = new Map<string, Awaited<ReturnType<typeof deliveries.accept>>>();
        return {
            deliveries: {
                async accept(newEvents, options) {
                    const key = newEvents[0]?.idempotency?.key ?? '';
                    accepted.set(key, accepted.get(key) ?? (await deliveries.accept(newEvents, options)));
                    return accepted.get(key) ?? [];
                },
            },
        };
    },
    // What it answers with is looked up, and not what was kept with the key.
    'answers a repeated key as before when the deliveries of its event are gone': (_, deliveries) => ({
        deliveries: {
            async accept(newEvents, options) {
                const accepted = await deliveries.accept(newEvents, options);
                const left = new Set(ids(await deliveries.list({ limit: 100 })));
                return accepted.map((one) => ({ ...one, deliveries: one.deliveries.filter((id) => left.has(id)) }));
            },
        },
    }),
});
proveWebhookLaws(t, retainedHeldLaws, {
    'removes held deliveries of events from long enough ago': retaining(() => ({ expire: nothing })),
});
proveWebhookLaws(t, retentionLaws, MUTANTS);
proveWebhookLaws(t, retainedReplayLaws, MUTANTS_OF_REPLAYS);
