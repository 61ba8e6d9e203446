import { hasFailed } from '../../../lib/webhooks/deliveries/delivery-states.ts';
import type { Replay, ReplayStore } from '../../../lib/webhooks/deliveries/replays.ts';
import { storeRefusals } from '../../../lib/webhooks/store-refusals.ts';
import { restartSchedule } from './delivery-transitions.ts';
import { type DeliveryRow, later, type ReplayRow, type WebhookState } from './webhook-state.ts';

/** A replay begins with what its rate allows in so many milliseconds, or with one delivery. */
const FIRST_STEP = 100;

/** Replays of the state. */
export function replayStore(state: WebhookState): ReplayStore {
    const { replays: rows } = state;
    return {
        async count(selection) {
            assertExporter(state, selection.exporterId);
            return chosenDeliveries(state, { ...selection, createdAt: state.clock() }).length;
        },

        async plan({ id, exporterId, failedSince, rate }) {
            assertExporter(state, exporterId);
            const createdAt = state.clock();
            const left = chosenDeliveries(state, { exporterId, failedSince, createdAt });
            const total = left.length;
            const replay: Replay = { id, exporterId, failedSince, rate, total, done: 0, state: 'running', createdAt, finishedAt: null };
            rows.set(id, {
                replay,
                left,
                paidUntil: later(createdAt, -Math.max(FIRST_STEP, Math.ceil(1_000 / rate))),
            });
            return structuredClone(replay);
        },

        async get(id) {
            const row = rows.get(id);
            if (row === undefined) {
                throw storeRefusals.unknownReplay();
            }
            return structuredClone(row.replay);
        },

        async list(limit, exporterIds) {
            const newestFirst = [...rows.values()].map(({ replay }) => replay).reverse();
            const asked = newestFirst.filter(({ exporterId }) => exporterIds?.includes(exporterId) !== false);
            return structuredClone(asked.filter(({ state }, index) => index < limit || state === 'running'));
        },

        async advance(limit) {
            for (const row of rows.values()) {
                if (row.replay.state === 'running') {
                    advanceOne(state, row, limit);
                }
            }
            return [...rows.values()].some(({ replay }) => replay.state === 'running');
        },

        async cancel(id) {
            const row = rows.get(id);
            if (row === undefined) {
                throw storeRefusals.unknownReplay();
            }
            if (row.replay.state === 'running') {
                row.replay = { ...row.replay, state: 'cancelled', finishedAt: state.clock() };
                row.left = [];
            }
            return structuredClone(row.replay);
        },
    };
}

function assertExporter(state: WebhookState, exporterId: string): void {
    if (!state.exporters.has(exporterId)) {
        throw storeRefusals.unknownExporter();
    }
}

function advanceOne(state: WebhookState, row: ReplayRow, limit: number): void {
    const now = state.clock();
    const { replay } = row;
    const unpaid = Math.min(1_000, now.getTime() - row.paidUntil.getTime());
    const room = Math.min(limit, Math.floor((replay.rate * unpaid) / 1000));
    if (room < 1) {
        return;
    }
    if (!state.exporters.has(replay.exporterId)) {
        row.replay = { ...replay, state: 'cancelled', finishedAt: now };
        row.left = [];
        return;
    }

    const asPlanned = new Set(chosenDeliveries(state, replay));
    const left = row.left.filter((delivery) => asPlanned.has(delivery));
    const chosen = left.slice(0, room);
    row.left = left.slice(room);
    for (const delivery of chosen) {
        restartSchedule(state, delivery, now);
        // Behind first tries, and found by no replay among those that were tried.
        Object.assign(delivery, { priority: 2, queuedAt: null });
    }
    const earliest = Math.max(row.paidUntil.getTime(), now.getTime() - 1_000);
    row.paidUntil = new Date(earliest + (chosen.length * 1_000) / replay.rate);
    const ends = chosen.length < room;
    row.replay = { ...replay, done: replay.done + chosen.length, ...(ends && { state: 'done', finishedAt: now }) };
}

/** What had failed by then, or is held. What waits for another try comes last, each in the order of acceptance. */
function chosenDeliveries(
    state: WebhookState,
    { exporterId, failedSince, createdAt }: Pick<Replay, 'exporterId' | 'failedSince' | 'createdAt'>,
): readonly DeliveryRow[] {
    const rows = [...state.deliveries.values()].filter((row) => {
        return row.exporterId === exporterId && row.priority > 0 && !state.erased.has(row.event.id);
    });
    if (failedSince === null) {
        return rows.filter(({ state }) => state === 'held');
    }

    const ended = rows.filter(({ state, finishedAt }) => {
        return hasFailed(state) && finishedAt !== null && finishedAt >= failedSince && finishedAt <= createdAt;
    });
    const waiting = rows.filter(({ state, priority, queuedAt }) => {
        return state === 'pending' && priority === 2 && queuedAt !== null && queuedAt >= failedSince && queuedAt < createdAt;
    });
    return [...ended, ...waiting];
}
