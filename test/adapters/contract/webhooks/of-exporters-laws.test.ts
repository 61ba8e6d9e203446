import t from 'tap';
import {
    activityOfExportersLaws,
    ofExportersLaws,
    replaysOfExportersLaws,
} from '../../../../adapters/contract/webhooks/of-exporters-laws.ts';
import type { DeliveryFilter } from '../../../../lib/webhooks/deliveries/deliveries.ts';
import type { DeliveryStore } from '../../../../lib/webhooks/deliveries/delivery-store.ts';
import { proveWebhookLaws } from './mutants.ts';

/** One that takes no names for no condition, as a hurried query builder does. */
const hurried = ({ exporterIds = [], ...filter }: DeliveryFilter): DeliveryFilter =>
    exporterIds.length === 0 ? filter : { exporterIds, ...filter };

proveWebhookLaws(
    t,
    { ...ofExportersLaws, ...activityOfExportersLaws, ...replaysOfExportersLaws },
    {
        'lists and counts the deliveries of several exporters, and of no other': (_, deliveries) => ({
            deliveries: { count: (filter, max) => deliveries.count(hurried(filter), max) },
        }),
        'lists the outcomes of several exporters, and of no other': (_, deliveries) => ({
            deliveries: {
                list: ({ exporterIds, outcome, ...query }) =>
                    deliveries.list({ ...query, ...(outcome ? { outcome } : { exporterIds: exporterIds ?? [] }) }),
            },
        }),
        'counts in slices the deliveries of several exporters, and of no other': (_, deliveries) => ({
            deliveries: {
                activity: async (bounds, { exporterIds: __, ...options }) => (await deliveries.activity?.(bounds, options)) ?? [],
            },
        }),
        // leaves to the few that are listed what runs as well
        'lists the replays of several exporters that run, however many have begun since': (_, deliveries) => ({
            deliveries: {
                replays: {
                    ...(deliveries.replays as NonNullable<DeliveryStore['replays']>),
                    list: async (limit, exporterIds) => ((await deliveries.replays?.list(limit, exporterIds)) ?? []).slice(0, limit),
                },
            },
        }),
        'lists the newest replays of several exporters, and of no other': (_, deliveries) => ({
            deliveries: {
                replays: {
                    ...(deliveries.replays as NonNullable<DeliveryStore['replays']>),
                    list: async (limit) => (await deliveries.replays?.list(limit)) ?? [],
                },
            },
        }),
    },
);
