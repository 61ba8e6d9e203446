import { ScanwireError } from '../../lib/scanwire-error.ts';
import type { Delivery, DeliveryQuery, DeliveryStore } from '../../lib/webhooks/store.ts';
import { accept } from './accept.ts';
import { claim, settle, sweep } from './attempts.ts';
import { dispatch } from './dispatch.ts';
import { asDelivery, move, type WebhookState } from './webhook-state.ts';

export function deliveryStore(state: WebhookState): DeliveryStore {
    return {
        transactions: false,

        async accept(acceptances, options) {
            if (options?.tx !== undefined) {
                throw new ScanwireError('MISCONFIGURED', 'the memory store cannot join a transaction');
            }
            return accept(state, acceptances);
        },

        async dispatch(options) {
            return dispatch(state, options);
        },

        async sweep(options) {
            return sweep(state, options);
        },

        async claim(requests) {
            return requests.map((request) => claim(state, request));
        },

        async settle(settlements) {
            return settlements.map((settlement) => settle(state, settlement));
        },

        async get(id) {
            const row = state.deliveries.get(id);
            return row === undefined ? null : asDelivery(state, row);
        },

        async attempts(deliveryId) {
            const history = state.deliveries.get(deliveryId)?.history ?? [];
            return history.map(({ token: _, lost: __, ...attempt }) => structuredClone(attempt));
        },

        async list(query) {
            return list(state, query);
        },

        async replay(id, at) {
            return replay(state, id, at);
        },
    };
}

function list(state: WebhookState, { state: wanted, exporterId, after, limit }: DeliveryQuery): readonly Delivery[] {
    const below = after === undefined ? Number.POSITIVE_INFINITY : (state.deliveries.get(after)?.seq ?? -1);
    const rows = [...state.deliveries.values()].filter((row) => {
        return row.seq < below && (wanted ?? row.state) === row.state && (exporterId ?? row.exporterId) === row.exporterId;
    });
    return rows
        .reverse()
        .slice(0, limit)
        .map((row) => asDelivery(state, row));
}

function replay(state: WebhookState, id: string, at: Date): Delivery {
    const row = state.deliveries.get(id);
    if (row === undefined) {
        throw new ScanwireError('NOT_FOUND', 'Unknown delivery', { field: 'id' });
    }
    if (!state.exporters.has(row.exporterId)) {
        throw new ScanwireError('CONFLICT', 'the exporter of this delivery was removed');
    }
    if (row.state !== 'delivered' && row.state !== 'exhausted') {
        throw new ScanwireError('CONFLICT', 'the delivery is still under way');
    }

    move(state, row, 'pending', at);
    row.dueAt = at;
    row.round = 0;
    row.priority = row.priority === 0 ? 0 : 1;
    return asDelivery(state, row);
}
