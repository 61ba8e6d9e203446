import { at } from '../../../adapters/contract/webhook-samples.ts';
import { ScanwireError } from '../../../lib/errors.ts';
import type { Delivery, DeliveryQuery, DeliveryStore, SweepOptions, Swept } from '../../../lib/webhooks/store.ts';
import { newestFirst } from './dispatch-mutants.ts';
import type { Mutant, Mutants } from './mutant.ts';

export const deliveryMutants: Mutants = {
    'takes a claim away that ran out': sweeping(({ now }) => ({ now: new Date(now.getTime() - 1) })),
    'exhausts a test whose claim ran out': (_, deliveries) => ({
        deliveries: { sweep: async (options) => ({ ...(await deliveries.sweep(options)), exhausted: 0 }) },
    }),
    'leaves a claim alone that has not run out': sweeping(({ now }) => ({ now: new Date(now.getTime() + 1) })),
    'tries fresh deliveries before an interrupted one': newestFirst,
    'counts no failure for an interrupted attempt': (exporters, deliveries) => ({
        exporters: {
            get: async (id) => {
                const exporter = await exporters.get(id);
                const swept = (await deliveries.list({ limit: 9 })).some(({ lastCode }) => lastCode === 'interrupted');
                return exporter && { ...exporter, consecutiveFailures: swept ? 1 : 0 };
            },
        },
    }),
    'returns jobs that were queued too long ago': sweeping(({ queuedBefore }) => ({ queuedBefore: new Date(queuedBefore.getTime() + 1) })),
    'sweeps no more than the limit': sweeping(({ limit }) => ({ limit: limit + 1 })),
    'finds each lost claim and job once when several sweep at once': (_, deliveries) => {
        let first: Promise<Swept> | undefined;
        return {
            deliveries: {
                sweep: (options) => {
                    first ??= deliveries.sweep(options);
                    return first;
                },
            },
        };
    },
    'knows nothing of a delivery that does not exist': (_, deliveries) => ({
        deliveries: {
            replay: (id, at) => deliveries.replay(id, at).catch(() => Promise.reject(new ScanwireError('CONFLICT', 'it is under way'))),
        },
    }),
    'lists the newest first, page by page': (_, deliveries) => ({
        deliveries: { list: async (query) => (await deliveries.list(query)).toReversed() },
    }),
    'lists the deliveries of a state': listing(({ state: _, ...query }) => query),
    'lists the deliveries of an exporter': listing(({ exporterId: _, ...query }) => query),
    'lists attempts first to last': (_, deliveries) => ({
        deliveries: { attempts: async (id) => (await deliveries.attempts(id)).toReversed() },
    }),
    'starts a new round for a replayed delivery': (_, deliveries) => ({
        deliveries: {
            claim: async (requests) => (await deliveries.claim(requests)).map((claim) => claim && { ...claim, round: claim.attempt }),
        },
    }),
    'tries a replayed delivery like a fresh one': newestFirst,
    'replays a test as a single attempt': (_, deliveries) => ({
        deliveries: {
            claim: async (requests) =>
                (await deliveries.claim(requests)).map((claim) => claim && { ...claim, single: claim.attempt === 1 }),
        },
    }),
    'refuses to replay what is under way': (_, deliveries) => ({ deliveries: { replay: replayAnything(deliveries) } }),
    'refuses to replay for an exporter that was removed': (_, deliveries) => ({ deliveries: { replay: replayAnything(deliveries) } }),
};

function sweeping(change: (options: SweepOptions) => Partial<SweepOptions>): Mutant {
    return (_, deliveries) => ({
        deliveries: { sweep: (options) => deliveries.sweep({ ...options, ...change(options) }) },
    });
}

function listing(change: (query: DeliveryQuery) => DeliveryQuery): Mutant {
    return (_, deliveries) => ({ deliveries: { list: (query) => deliveries.list(change(query)) } });
}

function replayAnything(deliveries: DeliveryStore): DeliveryStore['replay'] {
    return async (id) => {
        const delivery = await deliveries.get(id);
        return { ...(delivery as Delivery), state: 'pending', dueAt: at(0) };
    };
}
