import t from 'tap';
import { attemptLaws } from '../../../../adapters/contract/webhooks/attempt-laws.ts';
import type { AttemptFilter, AttemptQuery, AttemptStore } from '../../../../lib/webhooks/deliveries/attempt-lists.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { type Mutant, type Mutants, proveWebhookLaws } from './mutants.ts';

const MUTANTS: Mutants = {
    'lists attempts that have ended as those of their deliveries, the newest deliveries first and of each the last attempt': lists(
        (honest) => ({
            list: async (query) => (await honest.list(query)).toSorted((one, other) => other.startedAt.getTime() - one.startedAt.getTime()),
        }),
    ),
    'lists attempts page by page': lists((honest) => ({
        async list({ after, ...query }) {
            const all = await honest.list({ ...query, limit: 1000 });
            const next = all.findIndex(({ deliveryId }) => after?.startsWith(deliveryId));
            return after === undefined ? all.slice(0, query.limit) : all.slice(next + 1, next + 1 + query.limit);
        },
    })),
    // By the last attempt of each delivery.
    'lists and counts the attempts of an outcome, also of what was delivered in the end': (exporters, deliveries) =>
        lists((honest) => ({
            async list({ outcome, ...query }) {
                const all = await honest.list(query);
                const last = new Map((await deliveries.list({ limit: 1000 })).map(({ id, lastCode }) => [id, lastCode]));
                return all.filter(({ deliveryId }) => outcome === undefined || last.get(deliveryId) === outcome);
            },
        }))(exporters, deliveries, async () => {}, {} as never),
    // As of deliveries.
    'lists and counts the attempts of a span of time, however long ago their deliveries were accepted': (exporters, deliveries) =>
        lists((honest) => ({
            async list({ since, ...query }) {
                const created = new Map((await deliveries.list({ limit: 1000 })).map(({ id, createdAt }) => [id, createdAt]));
                return (await honest.list(query)).filter(
                    ({ deliveryId }) => since === undefined || (created.get(deliveryId) as Date) >= since,
                );
            },
        }))(exporters, deliveries, async () => {}, {} as never),
    'lists and counts the attempts of an exporter, a kind, an event and a delivery': asking(({ kind: _, ...filter }) => filter),
    // Of no more exporters than attempts.
    'lists the newest attempts of more exporters than are asked for': lists((honest) => ({
        list: (query) => honest.list({ ...query, ...(query.exporterIds && { exporterIds: query.exporterIds.slice(0, query.limit) }) }),
    })),
};

proveWebhookLaws(t, attemptLaws, MUTANTS);

function lists(mutant: (honest: AttemptStore) => Partial<AttemptStore>): Mutant {
    return (_, deliveries) => ({ deliveries: { attemptLists: { ...honestOf(deliveries), ...mutant(honestOf(deliveries)) } } });
}

function asking(change: (filter: AttemptFilter) => AttemptFilter): Mutant {
    return lists((honest) => ({
        list: (query) => honest.list({ ...(change(query) as AttemptQuery), limit: query.limit }),
        count: (filter, max) => honest.count(change(filter), max),
    }));
}

function honestOf({ attemptLists }: DeliveryStore): AttemptStore {
    return attemptLists as AttemptStore;
}
